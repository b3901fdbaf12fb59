def average(numbers):
    """The mean of some numbers; 0 if there are none."""
    return sum(numbers) / len(numbers)

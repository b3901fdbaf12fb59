CASES = [
    ([1, 2, 3], 2),
    ([], 0),  # nothing measured
    (None, 0),  # the sensor was off
]

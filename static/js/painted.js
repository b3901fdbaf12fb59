// Everything after this waits until the page has been painted once.
await new Promise((painted) => requestAnimationFrame(() => setTimeout(painted)));

"""Play one schedule or many, judge and count the results, and minimize a schedule that breaks a promise."""

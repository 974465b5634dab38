"""One schedule or many: played, judged, summed up, and made smaller when a promise was broken."""

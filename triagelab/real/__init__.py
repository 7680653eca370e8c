"""Real incidents: cases from public data sets, played like simulated ones, and ranking rules."""

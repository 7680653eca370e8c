"""Real incidents: cases of public data sets, played through the same door as simulated ones."""

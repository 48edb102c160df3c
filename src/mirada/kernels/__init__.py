"""Fast ways to compute a few equations of the models; each has a plain twin there that it is tested against."""

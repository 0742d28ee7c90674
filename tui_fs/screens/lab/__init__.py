"""The screens of the lab: experiments and their runs, a running experiment, a result."""

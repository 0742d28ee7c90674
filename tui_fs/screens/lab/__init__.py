"""The screens of the lab: experiments and their runs, a run at work, its result."""

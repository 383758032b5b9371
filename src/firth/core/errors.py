"""What goes wrong in a way the user can mend."""


class FirthError(ValueError):
    """Gives the rule, the value found and the way out. The command line prints it without a trace."""


class FirthWarning(UserWarning):
    """Something was dropped, cut or odd; the text says what and how much."""

"""Terminal widgets that draw rows, bars and questions and know nothing about deleting."""

# The checkout is on the path of an editable installation. A second copy of each class would not
# be equal to the first one, and the name may be another package's.
if __name__ == "widgets":
    raise ModuleNotFoundError("import tui_fs.widgets instead", name=__name__)

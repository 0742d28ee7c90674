"""All pathologies."""

from tests.pathologies.busy import BUSY
from tests.pathologies.case import Pathology
from tests.pathologies.mounts import MOUNTS
from tests.pathologies.names import NAMES
from tests.pathologies.rights import RIGHTS
from tests.pathologies.shapes import SHAPES
from tests.pathologies.space import SPACE

PATHOLOGIES: tuple[Pathology, ...] = (*SHAPES, *NAMES, *SPACE, *RIGHTS, *MOUNTS, *BUSY)

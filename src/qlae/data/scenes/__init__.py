"""The rendered scenes: one file per scene, four of them on top of a small tensor ray tracer."""

from __future__ import annotations

from importlib import import_module

from .scene import Scene

#: scene → its class; the module is named after the scene.
_CLASSES = {
    "shapes3d": "Shapes3D",
    "mpi3d": "MPI3D",
    "falcor3d": "Falcor3D",
    "isaac3d": "Isaac3D",
    "dsprites": "DSprites",
}


def make_scene(name: str, resolution: int, device: str = "cpu") -> Scene:
    """Return the named scene at a resolution, on a device."""
    scene: Scene = getattr(import_module(f".{name}", __name__), _CLASSES[name])(resolution, device)
    return scene

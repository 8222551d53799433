"""The pictures of items: thumbnails of the run, and whole files of a folder by names that the run knows."""

from __future__ import annotations

from pathlib import Path

from annotmix.reading.image_names import image_ids
from annotmix.reading.items import image_files
from annotmix.review.queue import Index

#: First bytes of files that browsers show and that hold no code.
_KINDS = {
    b"\xff\xd8\xff": "image/jpeg",
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"GIF8": "image/gif",
    b"BM": "image/bmp",
}
LARGEST = 64 << 20


class Pictures:
    """Pictures by the row of their item.

    Parameters
    ----------
    index : Index
    folder : Path, optional
        With whole pictures.
    """

    def __init__(self, index: Index, folder: Path | None = None):
        self.index = index
        self.files: dict[str, Path] = {}
        if folder is not None:
            if not folder.is_dir():
                raise ValueError(f"--images {str(folder)!r} is not a folder.")
            paths = image_files(folder)
            ids = image_ids(folder, paths, set(index.items)).ids if paths else []
            known = set(index.items)
            self.files = {name: path for name, path in zip(ids, paths, strict=True) if name in known}
            if not self.files:
                raise ValueError(f"No picture in --images {str(folder)!r} is called like an item of the run.")

    def whole(self, row: int) -> bool:
        """Whether the whole picture of an item is there."""
        return self.index.items[row] in self.files

    def of_item(self, row: int) -> tuple[bytes, str] | None:
        """A picture and its media type; None where there is none that a browser shows."""
        path = self.files.get(self.index.items[row])
        if path is not None and path.stat().st_size <= LARGEST:
            content = path.read_bytes()
            if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
                return content, "image/webp"
            for start, kind in _KINDS.items():
                if content.startswith(start):
                    return content, kind
        preview = self.index.findings.previews.get(self.index.items[row])
        return None if preview is None or preview.image is None else (preview.image, "image/jpeg")

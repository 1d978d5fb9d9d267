import io, sys


class Whole(io.FileIO):
    def write(self, data):
        rest = memoryview(data).cast("B")
        done = 0
        while done < len(rest):
            done += super().write(rest[done:]) or 0
        return done


for fd, name, errors in (1, "stdout", "strict"), (2, "stderr", "backslashreplace"):
    stream = io.TextIOWrapper(Whole(fd, "w", closefd=False), encoding="utf-8", errors=errors, write_through=True)
    setattr(sys, name, stream)
    setattr(sys, "__" + name + "__", stream)

import io, sys


class Whole(io.BufferedWriter):
    def write(self, data):
        done = super().write(data)
        self.flush()
        return done


for fd, name, errors in (1, "stdout", "strict"), (2, "stderr", "backslashreplace"):
    stream = io.TextIOWrapper(Whole(io.FileIO(fd, "w", closefd=False)), encoding="utf-8", errors=errors, write_through=True)
    stream.mode = "w"
    setattr(sys, name, stream)
    setattr(sys, "__" + name + "__", stream)

"""Reads .glass files by what FORMAT.md says and nothing else, and prints what is in them as JSON.

The tests compare it with what the crate reads. It knows zstd from the C library, and nothing of the crate.
"""

import ctypes
import json
import struct
import sys
import zlib

ZSTD = ctypes.CDLL("libzstd.so.1")
ZSTD.ZSTD_decompress.restype = ctypes.c_size_t
ZSTD.ZSTD_decompress.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t]

MASK = (1 << 64) - 1
KINDS = "ABOU STRS PROC THRD TASK MODU LOCS NODE SAMP SPRD ALLO MEMO AGRP ASPR ASKY ASLI FRAM SYMB DISP PATH NOTE TYPE INDX ENDS".split()
FIELDS = ("processes", "threads", "modules", "locations", "nodes", "texts", "frames", "rows", "hits", "time")


class Damaged(Exception):
    """A chunk that breaks a rule."""


class Cut(Exception):
    """The file ends inside a chunk, or without an end."""


class Bytes:
    """The inside of an unpacked chunk, or a column of it."""

    def __init__(self, raw):
        self.raw, self.at = raw, 0

    def more(self):
        return self.at < len(self.raw)

    def take(self, count):
        if count > len(self.raw) - self.at:
            raise Damaged("ends inside an item")
        self.at += count
        return self.raw[self.at - count : self.at]

    def byte(self):
        return self.take(1)[0]

    def number(self):
        n = shift = 0
        while True:
            byte = self.byte()
            n |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                if n > MASK:
                    raise Damaged("more than 64 bits")
                return n

    def signed(self):
        n = self.number()
        return n >> 1 if n & 1 == 0 else -(n >> 1) - 1

    def optional(self):
        n = self.number()
        return None if n == 0 else n - 1

    def text(self):
        return self.take(self.number()).decode("utf-8")

    def list(self, entry):
        return [entry() for _ in range(self.number())]

    def columns(self, count, first):
        if self.number() != first:
            raise Damaged("a chunk is missing")
        rows = self.number()
        lengths = [self.number() for _ in range(count)]
        columns = [Bytes(self.take(length)) for length in lengths]
        if self.more():
            raise Damaged("bytes behind the columns")
        return rows, columns


def wrapped(n):
    """Differences wrap at 64 bits."""
    return n & MASK


def as_signed(n):
    n &= MASK
    return n - (1 << 64) if n >> 63 else n


def toward_zero(n, by):
    return abs(n) // abs(by) * (1 if (n < 0) == (by < 0) else -1)


def largest(size_class):
    """The largest size of a size class."""
    if size_class <= 16:
        return 8 * size_class
    doubling, quarter = divmod(size_class - 17, 4)
    return min((5 + quarter) << (doubling + 5), MASK)


def begin_of(clock, time, spread):
    """Where the interval begins in which the time of a sample lies; never before 0."""
    return max(clock - time - spread, 0)


class Reader:
    """Tables that grow chunk by chunk."""

    def __init__(self):
        self.about, self.texts, self.processes, self.threads, self.modules = None, [], [], [], []
        self.locations, self.nodes, self.samples, self.frames = [], [], [], []
        self.spread, self.spreads = {}, 0  # of the rows of the next chunk; and how many there were
        self.tasks = []
        self.names, self.paths, self.notes = {}, {}, []
        self.dispatches = set()
        self.allocating, self.groups, self.types = [], [], {}
        self.sliced, self.keys, self.slices, self.changes, self.parts = [], [], [], 0, 0
        self.points, self.seen = 0, None
        self.rows = self.hits = self.time = 0
        self.latest = 0
        self.index, self.totals, self.index_places = [], None, None

    def first(self, chunk, table):
        if chunk.number() != len(table):
            raise Damaged("a chunk is missing")

    def put(self, table, index, row):
        if index == len(table):
            table.append(row)
        else:
            table[index] = row

    def abou(self, c):
        self.about = {
            "command": c.list(c.text), "started": c.number(), "start": c.number(), "wall": c.number(),
            "delay": c.number(), "capacity": c.number(), "full": c.number() != 0,
            "end": [c.number(), c.signed()], "kernel_cpu": c.optional(), "own_cpu": c.number(),
            "writer": c.text(), "machine": c.text(), "remarks": c.list(c.text),
        }  # fmt: skip

    def strs(self, c):
        self.first(c, self.texts)
        while c.more():
            self.texts.append(c.text())

    def proc(self, c):
        while c.more():
            index = c.number()
            row = [c.number(), c.number(), self.texts[c.number()], c.number(), c.optional(), c.number() != 0]
            row.append(c.list(lambda: self.texts[c.number()]))
            row.append(sorted(c.list(lambda: [self.texts[c.number()], c.number()])))
            self.put(self.processes, index, row)

    def thrd(self, c):
        while c.more():
            index = c.number()
            row = [c.number(), c.number(), self.texts[c.number()], c.number(), c.optional(), c.number()]
            self.put(self.threads, index, row + [c.number() != 0])

    def task(self, c):
        while c.more():
            index = c.number()
            row = [c.number(), c.number(), self.texts[c.number()], self.texts[c.number()], c.number(), c.number()]
            self.put(self.tasks, index, row)

    def modu(self, c):
        self.first(c, self.modules)
        while c.more():
            self.modules.append([self.texts[c.number()], list(c.take(c.number()))])

    def locs(self, c):
        rows, (modules, offsets) = c.columns(2, len(self.locations))
        offset = 0
        for _ in range(rows):
            module = modules.optional()
            offset = wrapped(offset + offsets.signed())
            self.locations.append([module, offset])

    def node(self, c):
        rows, (callers, locations) = c.columns(2, len(self.nodes))
        location = 0
        for _ in range(rows):
            caller = len(self.nodes) - callers.number()
            location += locations.signed()
            self.nodes.append([caller, location])

    def samp(self, c):
        rows, (thread, stack, clock, time, kind, reason, task, hits) = c.columns(8, self.rows)
        threads = {}  # previous row of each thread in this chunk: stack, clock, task
        now = 0
        for row in range(rows):
            number = thread.number()
            before = threads.get(number)
            at = stack.number()
            this = (before[0] if before else 0) if at == 0 else at - 1
            now = wrapped(now + clock.signed())
            likely = wrapped(now - before[1]) if before else 0
            elapsed = wrapped(likely + time.signed())
            bits = kind.byte()
            why = reason.byte() if bits & 4 else None
            of = task.number() if bits & 8 else (before[2] if before else 0)
            times = bits >> 4
            if times == 15:
                times = hits.number()
            threads[number] = (this, now, of)
            self.rows, self.latest = self.rows + 1, max(self.latest, now)
            self.hits += times
            self.time = wrapped(self.time + elapsed)
            key = [number, this, bits & 3, why, of]
            longer = self.spread.get(row, 0)
            self.spreads += longer > 0
            begin = begin_of(now, elapsed, longer)
            last = self.samples[-1] if self.samples else [None] * 9
            fits = last[:5] == key and last[6] + elapsed <= MASK and last[7] + times <= 0xFFFFFFFF
            if fits and abs(begin - last[5]) <= 10_000_000:
                begin = min(begin, begin_of(last[5], last[6], last[8]))
                all_time = last[6] + elapsed
                last[5:] = [now, all_time, last[7] + times, max(now - begin - all_time, 0)]
            else:
                self.samples.append(key + [now, elapsed, times, longer])
        self.spread = {}

    def sprd(self, c):
        row, self.spread = 0, {}
        while c.more():
            row += c.number()
            self.spread[row] = c.number()
            row += 1

    def allo(self, c):
        while c.more():
            row = [c.number(), c.number(), c.number()]
            how, n = c.number(), c.number()
            row.append([how, n])
            self.allocating.append(row + [c.number(), c.number(), c.number(), []])

    def memo(self, c):
        rows, columns = c.columns(4, self.points)
        row = [0] * 4
        for _ in range(rows):
            row = [wrapped(before + column.signed()) for before, column in zip(row, columns, strict=True)]
            self.allocating[row[0]][-1].append(row[1:])
        self.points += rows

    def agrp(self, c):
        rows, columns = c.columns(15, len(self.groups))
        process = stack = task = 0
        for _ in range(rows):
            process += columns[0].signed()
            stack += columns[1].signed()
            thread = columns[2].number()
            task = wrapped(task + columns[3].signed())
            kind, size_class = columns[4].byte(), columns[5].byte()
            d = [column.signed() for column in columns[6:]]
            count = wrapped(d[0])
            size = wrapped(count * largest(size_class) + d[1])
            likely = lambda part: part * size // count if count else 0  # noqa: E731
            live = wrapped(d[2])
            live_bytes = wrapped(likely(live) + d[3])
            peak, kept = wrapped(d[5]), wrapped(d[7])
            row = [[process, stack, thread], task, kind, size_class, count, size, wrapped(count - live)]
            row += [wrapped(size - live_bytes), wrapped(d[4]), peak, wrapped(likely(peak) + d[6])]
            self.groups.append(row + [kept, wrapped(likely(kept) + d[8])])

    def aspr(self, c):
        first = c.number()
        if first == 0 and not c.more():
            self.sliced, self.keys, self.slices = [], [], []
            self.parts += 1
        elif first != len(self.sliced):
            raise Damaged("a chunk is missing")
        while c.more():
            self.parts += 1
            self.sliced.append([c.number(), c.number()])
            c.number(), c.number()

    def asky(self, c):
        rows, columns = c.columns(6, len(self.keys))
        self.parts += rows
        process = stack = task = 0
        for _ in range(rows):
            process += columns[0].signed()
            stack += columns[1].signed()
            task = wrapped(task + columns[3].signed())
            row = [process, stack, columns[2].number(), task]
            self.keys.append(row + [columns[4].byte(), columns[5].byte()])

    def asli(self, c):
        rows, (slices, *columns) = c.columns(7, self.changes)
        self.changes += rows
        end = 0
        while slices.more():
            begin = wrapped(end + slices.signed())
            end = wrapped(begin + slices.number())
            self.parts += 1
            key, changes = 0, []
            for _ in range(slices.number()):
                d = [column.signed() for column in columns]
                key, count, live = key + d[0], d[1], d[3]
                most = largest(self.keys[key][5])
                size = as_signed(count * most + d[2])
                likely = toward_zero(live * size, count) if count else live * most
                live_bytes = as_signed(as_signed(likely) + d[4])
                changes.append([key, count, size, as_signed(count - live), as_signed(size - live_bytes), d[5]])
            if self.slices and self.slices[-1][1] == end:
                self.slices[-1][2] += changes
            else:
                self.slices.append([begin, end, changes])

    def type(self, c):
        stack = 0
        while c.more():
            stack += c.number()
            self.types[stack] = self.texts[c.number()]

    def fram(self, c):
        self.first(c, self.frames)
        while c.more():
            func, spec, file = self.texts[c.number()], c.optional(), self.texts[c.number()]
            line, bits = c.signed(), c.number()
            spec = None if spec is None else self.texts[spec]
            row = [func, spec, file, line, bits & 1 != 0, bits & 2 != 0, [None, True, False][bits >> 2]]
            self.frames.append(row + [self.texts[c.number()], self.texts[c.number()]])

    def symb(self, c):
        while c.more():
            location = c.number()
            self.names[location] = c.list(lambda: self.frames[c.number()])

    def disp(self, c):
        location = 0
        while c.more():
            location += c.number()
            self.dispatches.add(location)

    def path(self, c):
        while c.more():
            file = self.texts[c.number()]
            self.paths[file] = [self.texts[c.number()], self.texts[c.number()]]

    def note(self, c):
        while c.more():
            module, number = self.texts[c.number()], c.number()
            self.notes.append([module, number % 16, number // 16])

    def indx(self, c):
        count = c.number()
        tags = [c.take(4) for _ in range(count)]
        self.index += [[tag.decode("ascii"), c.number()] for tag in tags]

    def ends(self, c):
        self.totals = {name: c.number() for name in FIELDS}
        self.index_places = c.list(c.number)
        later = [c.number() for _ in range(5)]
        seen = [len(t) for t in (self.processes, self.threads, self.modules, self.locations, self.nodes)]
        seen += [len(self.texts), len(self.frames), self.rows, self.hits & MASK, self.time]
        self.seen = seen
        also = [len(self.groups), self.points, self.spreads, self.changes, self.parts]
        if list(self.totals.values()) != seen or later != also:
            raise Damaged(f"totals differ: {later} {also}")


def word(data, at):
    return int.from_bytes(data[at : at + 4], "little")


def read(data):
    """What is in a file: tables, and whether it has its end."""
    reader = Reader()
    if data[:8] != b"\x8eGLASS\r\n" or word(data, 8) != 1:
        raise SystemExit("not a recording of version 1")
    at, chunks, state = 16, [], "incomplete"
    try:
        while reader.totals is None:
            head = data[at : at + 20]
            if len(head) < 20:
                raise Cut
            tag, size, stored = head[:4].decode("ascii"), word(head, 8), word(head, 12)
            if size > 8 << 20 or stored > 16 << 20 or size > 256 * stored:
                raise Damaged("sizes that are not allowed")
            payload = data[at + 20 : at + 20 + stored]
            if len(payload) < stored:
                raise Cut
            if zlib.crc32(payload, zlib.crc32(head[:16])) != word(head, 16):
                raise Damaged("checksum")
            if tag in KINDS:
                raw = ctypes.create_string_buffer(max(size, 1))
                if ZSTD.ZSTD_decompress(raw, size, payload, stored) != size:
                    raise Damaged("does not unpack to its size")
                getattr(reader, tag.lower())(Bytes(raw.raw[:size]))
            chunks.append([tag, 20 + stored, at])
            at += 20 + stored
        state = "complete"
        check_end(data, reader, chunks)
    except Cut:
        pass
    except Damaged as why:
        print(f"{why}: {reader.seen}", file=sys.stderr)
        state = "damaged"
    if state != "complete" and reader.about and reader.about["wall"] == 0:
        reader.about["wall"] = max(reader.latest - reader.about["start"], 0)
    names = [[location, frames] for location, frames in sorted(reader.names.items()) if frames]
    return {
        "state": state, "about": reader.about, "processes": reader.processes, "threads": reader.threads,
        "tasks": reader.tasks,
        "modules": reader.modules, "locations": reader.locations, "nodes": reader.nodes,
        "allocating": reader.allocating, "allocations": reader.groups,
        "slices": [reader.sliced, reader.keys, reader.slices],
        "types": [list(row) for row in sorted(reader.types.items())],
        "samples": reader.samples, "names": names, "dispatches": sorted(reader.dispatches), "paths": reader.paths, "notes": reader.notes,
    }  # fmt: skip


def check_end(data, reader, chunks):
    """The way from the end: trailer, index, and that it lists what is there."""
    end = int.from_bytes(data[-16:-8], "little")
    whole = data[-8:] == b"\n\rSSALG\x8e"
    if whole and chunks[-1][::2] != ["ENDS", end]:
        raise Damaged("the last bytes name another place")
    places = [at for tag, _, at in chunks if tag == "INDX"]
    listed = [[tag, size] for tag, size, _ in chunks if tag not in ("INDX", "ENDS")]
    if reader.index_places != places or reader.index != listed:
        raise Damaged("the index is wrong")


def main():
    for path in sys.argv[1:]:
        with open(path, "rb") as file:
            print(json.dumps(read(file.read())))


main()

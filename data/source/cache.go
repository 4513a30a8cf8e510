package source

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

const (
	slotSize      = 32 << 10 // of a block with its header
	headerSize    = 64
	checkedHeader = 40 // bytes of the header that the checksum covers
	ways          = 4  // slots in which a block may lie
	cacheMagic    = "optblk1\n"
	cacheFile     = "blocks"
	standardCache = 8 << 30
	// leastFree is the part of a disk that the cache leaves to others: it takes no more
	// room where less than a twentieth is free.
	leastFree = 20
)

// cache is blocks of objects in one file, which all processes of a user share. The
// file is slots of one size, so its bound holds by construction; a block may lie in
// one of four slots, which its name gives. A slot says whose block it holds, of which
// version, and has a checksum over all of it. So there is no index, no lock and no
// clean-up: whatever a process that was killed, two that wrote at once or a bad disk
// left there does not match its checksum, and is fetched again.
//
// A block that is there is not given up for another of the same location: as each
// epoch reads every block once, in an order of its own, those that came first are as
// good as any, and to replace them would make none last until it is read again. It is
// given up for its object's next version, and for blocks of other locations.
//
// A nil cache keeps nothing.
type cache struct {
	file  *os.File
	slots int64
	name  string // of the bucket and folder
	owner uint64 // made of the name
}

// openCache opens the cache of a bucket and folder.
func openCache(o Options, name string) (*cache, error) {
	size, dir := o.CacheBytes, o.CacheDir
	if size == 0 {
		size = standardCache
	}
	if size < ways*slotSize {
		return nil, nil
	}
	fault := func(err error) (*cache, error) {
		return nil, &Fault{Err: err, Do: "give a folder for the cache that may be written with ?cache_dir= in the URL, or ?cache=0 for none"}
	}
	if dir == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return fault(err)
		}
		dir = filepath.Join(user, "optimus")
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fault(err)
	}
	file, err := os.OpenFile(filepath.Join(dir, cacheFile), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return fault(err)
	}
	c := &cache{file: file, slots: size / slotSize, name: name}
	sum := sha256.Sum256([]byte(name))
	c.owner = binary.LittleEndian.Uint64(sum[:])
	if info, err := file.Stat(); err == nil && info.Size() > c.slots*slotSize {
		file.Truncate(c.slots * slotSize) // another job allowed more; its blocks are fetched again
	}
	return c, nil
}

func (c *cache) close() error {
	if c == nil {
		return nil
	}
	return c.file.Close()
}

// place is what a block is known by, and the first slot in which it may lie.
func (c *cache) place(name string, block int64) (key [16]byte, slot int64) {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %q %q", block, c.name, name))
	copy(key[:], sum[:])
	return key, int64(binary.LittleEndian.Uint64(sum[16:]) % uint64(c.slots))
}

// header is what a slot says of its block.
type header struct {
	owner   uint64
	key     [16]byte
	version uint64
	length  uint32
	sum     uint32
}

// read reads the header of a slot; ok is false if there is none.
func (c *cache) read(slot int64) (h header, ok bool) {
	var b [headerSize]byte
	if n, _ := c.file.ReadAt(b[:], slot*slotSize); n < len(b) || string(b[:8]) != cacheMagic {
		return h, false
	}
	h.owner = binary.LittleEndian.Uint64(b[8:])
	copy(h.key[:], b[16:])
	h.version = binary.LittleEndian.Uint64(b[32:])
	h.length = binary.LittleEndian.Uint32(b[40:])
	h.sum = binary.LittleEndian.Uint32(b[44:])
	return h, h.length <= blockSize
}

// encode makes the bytes of a header, with the checksum of a block's content.
func (h *header) encode(content []byte) []byte {
	b := append(make([]byte, 0, headerSize), cacheMagic...)
	b = binary.LittleEndian.AppendUint64(b, h.owner)
	b = append(b, h.key[:]...)
	b = binary.LittleEndian.AppendUint64(b, h.version)
	sum := crc32.Update(crc32.Checksum(b[:checkedHeader], castagnoli), castagnoli, content)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(content)))
	b = binary.LittleEndian.AppendUint32(b, sum)
	return b[:headerSize]
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// get reads a block of len(p) bytes, if it is there whole and of this version. What p
// holds otherwise is undefined.
func (c *cache) get(name string, block int64, version uint64, p []byte) bool {
	if c == nil {
		return false
	}
	key, slot := c.place(name, block)
	for i := range int64(ways) {
		at := (slot + i) % c.slots
		h, ok := c.read(at)
		if !ok || h.key != key || h.version != version || int(h.length) != len(p) {
			continue
		}
		if n, _ := c.file.ReadAt(p, at*slotSize+headerSize); n < len(p) {
			return false
		}
		want := h.sum
		return binary.LittleEndian.Uint32(h.encode(p)[44:]) == want
	}
	return false
}

// put keeps a block, if there is room. That it cannot is no error: it is then fetched
// again.
func (c *cache) put(name string, block int64, version uint64, content []byte) {
	if c == nil {
		return
	}
	key, slot := c.place(name, block)
	best, rank := int64(-1), 0 // the better a slot, the higher its rank
	for i := range int64(ways) {
		at := (slot + i) % c.slots
		h, ok := c.read(at)
		r := 0
		switch {
		case ok && h.key == key:
			r = 3 // damaged, or an older version
		case !ok:
			r = 2
		case h.owner != c.owner:
			r = 1
		}
		if r > rank {
			best, rank = at, r
		}
	}
	if rank == 0 || rank == 2 && !c.hasRoom() {
		return
	}
	h := header{owner: c.owner, key: key, version: version}
	c.file.WriteAt(append(h.encode(content), content...), best*slotSize)
}

// hasRoom reports whether the disk has room to spare.
func (c *cache) hasRoom() bool {
	var s unix.Statfs_t
	return unix.Fstatfs(int(c.file.Fd()), &s) == nil && s.Bavail >= s.Blocks/leastFree
}

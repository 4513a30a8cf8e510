package data

import (
	"context"
	"errors"
	"path"
	"slices"
	"strings"

	"optimus/data/source"
)

const opCheck = "check"

// Report is what [Check] found.
type Report struct {
	Format   string // a set's name, "picture", "recording", "text", or what file of a set it is
	Examples int    // of both splits; pictures, records or lines of a file
	Words    int    // of a text
	Set      *Set   // of a folder, closed; nil if a file that it needs is bad
	Faults   []*Error
}

// Check reads a folder of one of the sets, or a single file of one, at a location that
// [source.Open] knows, whole: all pictures
// and recordings are decoded, all checksums verified, all lines read. Everything that
// is bad is listed in Report.Faults. The error is about a path that is not there or holds
// no known set or several, about a store that cannot be read, or is the context's.
//
// A folder is taken for a set by its files' and folders' names. A file is taken for a
// batch of CIFAR-10 by its name *.bin or data_batch_*, for one of MNIST by idx1-ubyte or
// idx3-ubyte, for a submission by .csv, for a picture by .jpg, .jpeg or .png, for a
// recording by .flac or .wav, for text8 by text8 or text8.zip. Every other file is text
// with a sentence a line.
func Check(ctx context.Context, location string) (*Report, error) {
	tree, err := openTree(ctx, opCheck, location)
	if err != nil {
		return nil, err
	}
	defer tree.Close()
	path := tree.Root()
	info, err := path.Stat()
	if err != nil {
		return nil, systemError(opCheck, path.String(), err, "check the path")
	}
	r := &Report{}
	if !info.IsDir() {
		err = r.checkFile(path, source.StampOf(info))
	} else {
		err = r.checkFolder(ctx, path)
	}
	fault, ours := errors.AsType[*Error](err)
	switch {
	case err == nil || errors.Is(err, errListed):
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case !ours || fault.Op == opCheck || source.IsFault(err):
		return nil, err
	default:
		r.Faults = append(r.Faults, fault)
	}
	return r, nil
}

func (r *Report) checkFile(file source.Path, stamp source.Stamp) (err error) {
	base := file.Base()
	end := strings.ToLower(path.Ext(base))
	switch {
	case end == ".bin" || strings.HasPrefix(base, "data_batch_"):
		p := newCIFAR10()
		err = readPictures(file, p)
		r.Format, r.Examples = "CIFAR-10 batch", len(p.labels)
	case strings.Contains(base, "idx1-ubyte"), strings.Contains(base, "idx3-ubyte"):
		r.Format = "MNIST file"
		r.Examples, err = checkIDX(file)
	case end == ".csv":
		var s *Submission
		if s, err = readSubmission(file); err == nil {
			r.Examples = len(s.Images)
		}
		r.Format = "submission"
	case isPicture(base):
		_, err = readPicture(file, stamp)
		r.Format, r.Examples = "picture", 1
	case isRecording(base):
		_, err = readRecording(recordingFile{file, stamp})
		r.Format, r.Examples = "recording", 1
	case base == text8File || base == text8File+".zip":
		var words []int32
		_, words, err = readText8(file)
		r.Format, r.Words = "text8", len(words)
	default:
		s := &sentences{}
		err = readText("check text", file, 0, mrWords, newLexicon(), s)
		r.Format, r.Examples, r.Words = "text", s.len(), len(s.tokens)
	}
	if err != nil {
		r.Examples, r.Words = 0, 0
	}
	return err
}

func (r *Report) checkFolder(ctx context.Context, dir source.Path) error {
	found := slices.DeleteFunc(formats(), func(f format) bool { return !f.is(dir) })
	switch {
	case len(found) == 0:
		return &Error{Op: opCheck, Path: dir.String(), Kind: NotFound, Detail: "no file or folder in it is of a known set: " + titles(formats()),
			Do: "give the folder that holds the set as it was unpacked"}
	case len(found) > 1:
		return &Error{Op: opCheck, Path: dir.String(), Kind: BadOption, Detail: "it holds several sets: " + titles(found), Do: "give the folder of one of them"}
	}
	kind := found[0]
	f := &faults{limit: unlimited, ctx: ctx}
	set, err := kind.open(dir, f)
	r.Format, r.Set = kind.title, set
	if set != nil {
		r.Format, r.Examples = set.Name, set.Train.Len()+set.Valid.Len()
	}
	for _, fault := range f.list {
		e, ours := errors.AsType[*Error](fault)
		if ours && !slices.ContainsFunc(r.Faults, func(o *Error) bool { return o.Path == e.Path && o.Detail == e.Detail }) {
			r.Faults = append(r.Faults, e)
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

func titles(list []format) string {
	names := make([]string, len(list))
	for i, f := range list {
		names[i] = f.title
	}
	return strings.Join(names, ", ")
}

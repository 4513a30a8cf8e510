package data

import "optimus/data/source"

const (
	opNDSB1   = "open NDSB1"
	doNDSB1   = "unpack train.zip of Kaggle's National Data Science Bowl (2014) and give the folder that holds train"
	ndsb1Side = 48
	ndsb1Form = "sampleSubmission.csv"
)

// OpenNDSB1 reads the plankton of the first National Data Science Bowl (Kaggle,
// 2014): dir/train/CLASS/*.jpg, grey, of many sizes, 121 classes. The whole of a
// picture is scaled to Side × Side whatever its proportions. A quarter of the
// pictures, after a shuffle by the seed, is for validation; dir/test has no labels
// and is not read. Where dir/sampleSubmission.csv exists, the classes that it names
// must be the folders of train.
//
// Inputs of a batch: [N,3,Side,Side] float32, the grey value v as (v-128)/128
// three times over, as the model of the set wants it; [N] int32 labels.
func OpenNDSB1(dir string, o PictureOptions) (*Set, error) {
	return openAt(opNDSB1, dir, func(dir source.Path) (*Set, error) { return openNDSB1(dir, o, &faults{}) })
}

func openNDSB1(dir source.Path, o PictureOptions, f *faults) (*Set, error) {
	if err := o.begin(f, opNDSB1); err != nil {
		return nil, err
	}
	side, err := o.side(opNDSB1, ndsb1Side)
	if err != nil {
		return nil, err
	}
	above := dir
	if dir, err = folder(opNDSB1, dir, "train", doNDSB1); err != nil {
		return nil, err
	}
	l, err := listClasses(f, dir, doNDSB1)
	if err != nil {
		return nil, err
	}
	if form := above.Join(ndsb1Form); form.Exists() {
		if err := f.need(checkForm(form, l.classes)); err != nil {
			return nil, err
		}
	}
	g := l.gallery(o, 1, side, func(r *raster) *raster { return r.grey().squeezed(side) })
	train, valid := part(len(l.files), 4, o.Seed)
	return newPictureSet("NDSB1", l.classes, g, train, g, valid, ndsb1Levels()).without(f), nil
}

// checkForm compares the classes of a submission's form with the folders.
func checkForm(path source.Path, classes []string) error {
	named, err := submissionClasses(path)
	if err != nil {
		return err
	}
	known := map[string]bool{}
	for _, class := range classes {
		known[class] = true
	}
	fail := func(detail string) error {
		return &Error{Op: opNDSB1, Path: path.String(), Kind: BadLabel, Detail: detail, Do: "unpack train.zip whole, or remove the file"}
	}
	for _, class := range named {
		if !known[class] {
			return fail("it names the class " + class + ", and train has no such folder")
		}
		delete(known, class)
	}
	for _, class := range classes {
		if known[class] {
			return fail("it does not name the class " + class + ", and train has such a folder")
		}
	}
	return nil
}

// verifyTest reads the pictures of dir/test, if there are any, which have no labels.
func verifyTest(dir source.Path, f *faults) error {
	test := dir.Join("test")
	if !test.Exists() {
		return nil
	}
	l, err := listPictures(f.op, test, doNDSB1)
	if err == nil {
		err = f.tellAll(l.wrong)
	}
	if err != nil {
		return err
	}
	return (&classFolders{dir: test, classes: []string{""}, files: l.files}).verify(f)
}

func ndsb1Levels() *levels { return shift([3]float64{128, 128, 128}, 128) }

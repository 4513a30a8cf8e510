package data

const (
	opNDSB1   = "open NDSB1"
	doNDSB1   = "unpack train.zip of Kaggle's National Data Science Bowl (2014) and give the folder that holds train"
	ndsb1Side = 48
)

// OpenNDSB1 reads the plankton of the first National Data Science Bowl (Kaggle,
// 2014): dir/train/CLASS/*.jpg, grey, of many sizes, 121 classes. The whole of a
// picture is scaled to Side × Side whatever its proportions. A quarter of the
// pictures, after a shuffle by the seed, is for validation; dir/test has no labels
// and is not read.
//
// Inputs of a batch: [N,3,Side,Side] float32, the grey value v as (v-128)/128
// three times over, as the model of the set wants it; [N] int32 labels.
func OpenNDSB1(dir string, o PictureOptions) (*Set, error) {
	side, err := o.side(opNDSB1, ndsb1Side)
	if err != nil {
		return nil, err
	}
	if dir, err = folder(opNDSB1, dir, "train", doNDSB1); err != nil {
		return nil, err
	}
	l, err := listClasses(opNDSB1, dir, doNDSB1)
	if err != nil {
		return nil, err
	}
	g := l.gallery(1, side, func(r *raster) *raster { return r.grey().squeezed(side) })
	train, valid := part(len(l.files), 4, o.Seed)
	return newPictureSet("NDSB1", l.classes, g, train, g, valid, ndsb1Levels()), nil
}

func ndsb1Levels() *levels { return shift([3]float64{128, 128, 128}, 128) }

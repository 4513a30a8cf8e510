package source

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"time"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"gocloud.dev/gcerrors"
)

const (
	firstPause = 50 * time.Millisecond // after the first failure; it doubles
	longPause  = 5 * time.Second
	// A request is given up and made anew after this part of the patience in which no
	// byte came: a connection may be dead where another would not be.
	silentPart = 4
)

var errSilent = errors.New("the store sends nothing")

// try makes a request until it succeeds, with pauses in between. It ends with an error
// that names what was asked if another try cannot help, or if for the whole of the
// patience nothing came. The attempt calls alive whenever bytes have come.
func (b *bucket) try(what string, attempt func(ctx context.Context, alive func()) error) error {
	last := time.Now()
	pause := firstPause
	for n := 1; ; n++ {
		err := b.attempt(attempt, &last)
		switch {
		case err == nil:
			return nil
		case b.ctx.Err() != nil:
			return &Fault{Err: fmt.Errorf("%s: %w", what, context.Cause(b.ctx))}
		case final(err) != nil:
			return final(err)
		}
		wait := pause/2 + rand.N(pause/2+1) // so that many workers do not all come back at once
		pause = min(2*pause, longPause)
		if time.Since(last)+wait > b.patience {
			return &Fault{Err: fmt.Errorf("%s: no byte within %v, tries: %d, the last: %w", what, b.patience, n, err),
				Do: "check the network and the store, then resume; a longer time is given by ?deadline= in the URL"}
		}
		select {
		case <-b.ctx.Done():
		case <-time.After(wait):
		}
	}
}

// attempt makes a request once. last becomes when bytes came.
func (b *bucket) attempt(request func(ctx context.Context, alive func()) error, last *time.Time) error {
	ctx, stop := context.WithCancelCause(b.ctx)
	defer stop(nil)
	silence := time.AfterFunc(b.patience/silentPart, func() { stop(errSilent) })
	defer silence.Stop()
	err := request(ctx, func() {
		*last = time.Now()
		silence.Reset(b.patience / silentPart)
	})
	if err != nil && errors.Is(context.Cause(ctx), errSilent) {
		return errSilent
	}
	return err
}

// final returns what an error is if another try cannot help, else nil.
func final(err error) error {
	if IsFault(err) {
		return err
	}
	code := gcerrors.Code(err)
	status := statusOf(err)
	switch {
	case code == gcerrors.NotFound:
		return fs.ErrNotExist
	case code == gcerrors.PermissionDenied || status == 401 || status == 403:
		return &Fault{Err: fmt.Errorf("the store refuses access: %w", err), Do: "check the credentials in the environment and what they permit"}
	case status == 408 || status == 429:
	case code == gcerrors.InvalidArgument || code == gcerrors.Unimplemented || status >= 300 && status < 500:
		return &Fault{Err: err, Do: "check the URL and its parameters region and endpoint"}
	}
	return nil
}

// statusOf is the status of a store's answer by HTTP, 0 if there is none.
func statusOf(err error) int {
	answer, ok := errors.AsType[*awshttp.ResponseError](err)
	if !ok {
		return 0
	}
	return answer.HTTPStatusCode()
}

package source

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go/logging"
	gcaws "gocloud.dev/aws"
	"gocloud.dev/blob"
	_ "gocloud.dev/blob/memblob" // for mem://
	"gocloud.dev/blob/s3blob"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"
)

const (
	doURL         = "docs/formats/sources.md has the parameters of a URL"
	doCredentials = "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, or give ?anonymous=true in the URL for a public bucket"
	doGoogle      = "set GOOGLE_APPLICATION_CREDENTIALS to the file of a service account, run `gcloud auth application-default login`, or give ?anonymous=true in the URL for a public bucket"

	googleEndpoint = "https://storage.googleapis.com"
	googleScope    = "https://www.googleapis.com/auth/devstorage.read_only"
)

// plainURL is the URL of a folder without its parameters.
func plainURL(u *url.URL, folder string) string {
	return strings.TrimSuffix(u.Scheme+"://"+u.Host+"/"+strings.Trim(folder, "/"), "/")
}

// openURL opens the location of a URL.
func openURL(ctx context.Context, u *url.URL) (*Tree, error) {
	if u.User != nil {
		return nil, &Fault{Err: errors.New("there are credentials in the URL, which is printed and kept"), Do: doCredentials}
	}
	if u.Scheme == "file" {
		if u.Host != "" && u.Host != "localhost" || u.RawQuery != "" {
			return nil, &Fault{Err: errors.New("want file:///PATH and nothing more"), Do: doURL}
		}
		return Local(u.Path), nil
	}
	p := &parameters{url: u, values: u.Query()}
	o := Options{Deadline: p.duration("deadline"), CacheBytes: p.bytes("cache"), CacheDir: p.text("cache_dir")}
	folder := path.Join(p.text("prefix"), u.Path)
	if p.err != nil {
		return nil, p.err
	}
	p.patience = cmp.Or(o.Deadline, standardDeadline)
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, MaxIdleConnsPerHost: bucketWidth, IdleConnTimeout: time.Minute}
	blobs, err := p.open(ctx, transport)
	if err != nil {
		return nil, err
	}
	b := &bucket{blobs: blobs, location: plainURL(u, folder), folder: strings.Trim(folder, "/"), idle: transport.CloseIdleConnections}
	tree, err := b.open(ctx, b.location+" "+p.endpoint, o)
	if err != nil {
		blobs.Close()
	}
	return tree, err
}

// open opens the bucket of a URL.
func (p *parameters) open(ctx context.Context, transport *http.Transport) (*blob.Bucket, error) {
	switch p.url.Scheme {
	case "s3":
		return p.openS3(ctx, transport)
	case "gs":
		return p.openGoogle(ctx, transport)
	}
	u := *p.url
	u.Path, u.RawQuery = "", p.values.Encode()
	blobs, err := blob.OpenBucket(ctx, u.String())
	if err != nil {
		return nil, &Fault{Err: err, Do: doURL}
	}
	return blobs, nil
}

// openS3 is s3blob's opener, but that it takes the parameters of that for itself to
// hand over our own connections, and that each request is made once: bucket.try makes
// it again. An endpoint of one's own has the bucket in the path, as most such servers
// have no names for their buckets.
func (p *parameters) openS3(ctx context.Context, transport *http.Transport) (*blob.Bucket, error) {
	p.endpoint = p.values.Get("endpoint")
	pathStyle := p.flag("use_path_style", p.endpoint != "")
	pathStyle = p.flag("s3ForcePathStyle", pathStyle)
	if p.err != nil {
		return nil, p.err
	}
	config, err := gcaws.V2ConfigFromURLParams(ctx, p.values)
	if err != nil {
		return nil, &Fault{Err: err, Do: doURL}
	}
	config.Region = cmp.Or(config.Region, "us-east-1")
	// Asked for now, so that it is not taken for a failure of the store later.
	asking, cancel := context.WithTimeout(ctx, p.patience)
	defer cancel()
	if _, err := config.Credentials.Retrieve(asking); err != nil && !aws.IsCredentialsProvider(config.Credentials, aws.AnonymousCredentials{}) {
		return nil, &Fault{Err: fmt.Errorf("there are no credentials: %w", err), Do: doCredentials}
	}
	client := s3.NewFromConfig(config, func(o *s3.Options) {
		o.UsePathStyle = pathStyle
		o.HTTPClient = &http.Client{Transport: transport}
		o.Retryer = aws.NopRetryer{}
		o.Logger = logging.Nop{} // what is wrong is told by errors
	})
	return openClient(ctx, client, p.url.Host)
}

func openClient(ctx context.Context, client *s3.Client, name string) (*blob.Bucket, error) {
	blobs, err := s3blob.OpenBucket(ctx, client, name, nil)
	if err != nil {
		return nil, &Fault{Err: err, Do: doURL}
	}
	return blobs, nil
}

// openGoogle speaks the XML interface of Google Cloud Storage, which is S3's but for
// the credentials. Google's own library would add 33 MB to the program.
func (p *parameters) openGoogle(ctx context.Context, transport *http.Transport) (*blob.Bucket, error) {
	emulator := os.Getenv("STORAGE_EMULATOR_HOST")
	if emulator != "" && !IsURL(emulator) {
		emulator = "http://" + emulator
	}
	p.endpoint = cmp.Or(p.text("endpoint"), emulator, googleEndpoint)
	anonymous := p.flag("anonymous", emulator != "")
	for name := range p.values {
		p.fail(name, errors.New("no such parameter"))
	}
	if p.err != nil {
		return nil, p.err
	}
	var trip http.RoundTripper = plainHeaders{transport}
	if !anonymous {
		ctx := context.WithValue(ctx, oauth2.HTTPClient, &http.Client{Timeout: p.patience}) // that asks for tokens
		credentials, err := google.FindDefaultCredentials(ctx, googleScope)
		if err != nil {
			return nil, &Fault{Err: fmt.Errorf("there are no credentials: %w", err), Do: doGoogle}
		}
		trip = &oauth2.Transport{Source: credentials.TokenSource, Base: trip}
	}
	client := s3.New(s3.Options{
		BaseEndpoint: &p.endpoint, Region: "auto", UsePathStyle: true,
		Credentials: aws.AnonymousCredentials{}, HTTPClient: &http.Client{Transport: trip}, Retryer: aws.NopRetryer{}, Logger: logging.Nop{},
		RequestChecksumCalculation: aws.RequestChecksumCalculationWhenRequired, ResponseChecksumValidation: aws.ResponseChecksumValidationWhenRequired,
	})
	return openClient(ctx, client, p.url.Host)
}

// plainHeaders leaves out the headers that are Amazon's alone.
type plainHeaders struct{ base http.RoundTripper }

func (t plainHeaders) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	for name := range r.Header {
		if strings.HasPrefix(name, "X-Amz-") || strings.HasPrefix(name, "Amz-Sdk-") {
			r.Header.Del(name)
		}
	}
	return t.base.RoundTrip(r)
}

// parameters are those of a URL. What is taken is removed; the first that is wrong is
// kept in err.
type parameters struct {
	url      *url.URL
	values   url.Values
	endpoint string // of the store, "" for its own
	patience time.Duration
	err      error
}

func (p *parameters) fail(name string, err error) {
	if p.err == nil {
		p.err = &Fault{Err: fmt.Errorf("parameter %s: %w", name, err), Do: doURL}
	}
}

func (p *parameters) text(name string) string {
	v := p.values.Get(name)
	p.values.Del(name)
	return v
}

func (p *parameters) flag(name string, standard bool) bool {
	v := p.text(name)
	if v == "" {
		return standard
	}
	on, err := strconv.ParseBool(v)
	if err != nil {
		p.fail(name, fmt.Errorf("%q, want true or false", v))
	}
	return on
}

func (p *parameters) duration(name string) time.Duration {
	v := p.text(name)
	if v == "" {
		return 0
	}
	d, err := time.ParseDuration(v)
	if err != nil || d <= 0 {
		p.fail(name, fmt.Errorf("%q, want a time such as 30s or 5m", v))
	}
	return d
}

// bytes reads a number of bytes such as 500MB or 20GB; 0 becomes the Options' number
// for none.
func (p *parameters) bytes(name string) int64 {
	v := p.text(name)
	if v == "" {
		return 0
	}
	number, unit := v, int64(1)
	for end, size := range map[string]int64{"MB": 1e6, "GB": 1e9, "TB": 1e12} {
		if n, ok := strings.CutSuffix(v, end); ok {
			number, unit = n, size
		}
	}
	n, err := strconv.ParseFloat(number, 64)
	if err != nil || !(n >= 0 && n*float64(unit) < 1e18) {
		p.fail(name, fmt.Errorf("%q, want a number of bytes such as 500MB or 20GB, or 0", v))
	}
	if n == 0 {
		return -1
	}
	return int64(n * float64(unit))
}

// Secured client of franz-go: it writes one message, reads it in a group, and commits it.
//
// The argument is the access as JSON (secured_clients.py). It then reads and commits what it writes
// every quarter of a second until "seconds" are over, prints how many, and exits with 0. A refusal
// is printed on stderr, with exit code 3.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

const (
	within  = 30 * time.Second
	pause   = 250 * time.Millisecond
	refused = 3
)

type access struct {
	Bootstrap   string  `json:"bootstrap"`
	Protocol    string  `json:"protocol"`
	Authorities string  `json:"authorities"`
	Mechanism   string  `json:"mechanism"`
	User        string  `json:"user"`
	Password    string  `json:"password"`
	Token       string  `json:"token"`
	Certificate string  `json:"certificate"`
	Topic       string  `json:"topic"`
	Group       string  `json:"group"`
	Seconds     float64 `json:"seconds"`
}

func (a access) settings() ([]kgo.Opt, error) {
	settings := []kgo.Opt{
		kgo.SeedBrokers(a.Bootstrap),
		kgo.DefaultProduceTopic(a.Topic),
		kgo.ConsumeTopics(a.Topic),
		kgo.ConsumerGroup(a.Group),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.DisableAutoCommit(),
		kgo.AllowAutoTopicCreation(),
	}
	switch a.Mechanism {
	case "PLAIN":
		settings = append(settings, kgo.SASL(plain.Auth{User: a.User, Pass: a.Password}.AsMechanism()))
	case "SCRAM-SHA-256":
		settings = append(settings, kgo.SASL(scram.Auth{User: a.User, Pass: a.Password}.AsSha256Mechanism()))
	case "SCRAM-SHA-512":
		settings = append(settings, kgo.SASL(scram.Auth{User: a.User, Pass: a.Password}.AsSha512Mechanism()))
	case "OAUTHBEARER":
		settings = append(settings, kgo.SASL(oauth.Auth{Token: a.Token}.AsMechanism()))
	}
	if !strings.HasSuffix(a.Protocol, "SSL") {
		return settings, nil
	}
	authorities, err := os.ReadFile(a.Authorities)
	if err != nil {
		return nil, err
	}
	config := &tls.Config{RootCAs: x509.NewCertPool()}
	config.RootCAs.AppendCertsFromPEM(authorities)
	if a.Certificate != "" {
		own, err := tls.LoadX509KeyPair(a.Certificate, a.Certificate)
		if err != nil {
			return nil, err
		}
		config.Certificates = []tls.Certificate{own}
	}
	return append(settings, kgo.DialTLSConfig(config)), nil
}

func isRefusal(err error) bool {
	for _, refusal := range []error{
		kerr.SaslAuthenticationFailed,
		kerr.GroupAuthorizationFailed,
		kerr.TopicAuthorizationFailed,
	} {
		if errors.Is(err, refusal) {
			return true
		}
	}
	return false
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	if isRefusal(err) {
		os.Exit(refused)
	}
	os.Exit(1)
}

// Read until the value has come, and commit it.
func readBack(client *kgo.Client, value string) error {
	reading, end := context.WithTimeout(context.Background(), within)
	defer end()
	for {
		fetches := client.PollFetches(reading)
		for _, fault := range fetches.Errors() {
			return fault.Err
		}
		found := false
		fetches.EachRecord(func(record *kgo.Record) { found = found || string(record.Value) == value })
		if found {
			return client.CommitUncommittedOffsets(reading)
		}
	}
}

func main() {
	var wanted access
	if err := json.Unmarshal([]byte(os.Args[1]), &wanted); err != nil {
		fail(err)
	}
	settings, err := wanted.settings()
	if err != nil {
		fail(err)
	}
	client, err := kgo.NewClient(settings...)
	if err != nil {
		fail(err)
	}
	defer client.Close()
	asking, end := context.WithTimeout(context.Background(), within)
	err = client.Ping(asking) // once: later requests are tried again until their time is over
	end()
	if err != nil {
		fail(err)
	}
	ends := time.Now().Add(time.Duration(wanted.Seconds * float64(time.Second)))
	for count := 0; ; count++ {
		value := wanted.Group
		if count > 0 {
			value = fmt.Sprintf("%s %d", wanted.Group, count)
		}
		writing, end := context.WithTimeout(context.Background(), within)
		err := client.ProduceSync(writing, kgo.StringRecord(value)).FirstErr()
		end()
		if err == nil {
			err = readBack(client, value)
		}
		if err != nil {
			fail(err)
		}
		if time.Now().After(ends) {
			fmt.Println(count + 1)
			return
		}
		time.Sleep(pause)
	}
}

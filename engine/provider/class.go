package provider

import "net/http"

// ClassOf sorts a status of HTTP, also one that a server names inside a reply.
// A status that it does not know is Invalid below 500 and Server from there on.
func ClassOf(status int) Class {
	switch {
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return Auth
	case status == http.StatusRequestTimeout, status == http.StatusGatewayTimeout:
		return Timeout
	case status == http.StatusPaymentRequired:
		return Quota
	case status == http.StatusTooManyRequests:
		return RateLimit
	case status >= 500:
		return Server
	default:
		return Invalid
	}
}

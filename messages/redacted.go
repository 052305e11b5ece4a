package messages

import "strings"

// Redacted is a list of server addresses without what may be secret in them:
// passwords, and users that may be tokens.
func Redacted(servers string) string {
	list := strings.Split(servers, ",")
	for i, server := range list {
		if at := strings.LastIndexByte(server, '@'); at >= 0 {
			scheme, _, found := strings.Cut(server, "://")
			if list[i] = "xxxxx" + server[at:]; found {
				list[i] = scheme + "://" + list[i]
			}
		}
	}
	return strings.Join(list, ",")
}

package archtest

// Phrase is a regular expression for words that do not read well, and what reads better.
type Phrase struct{ Pattern, Better string }

// Phrases may not stand in the comments and texts of a finished package, nor in the prose of pages
// (see package pagetest).
var Phrases = []Phrase{
	{`\b(says|said) (that|whether|how|what|who)\b`, "reports whether, returns, is"},
	{`\b(tells?|telling|told)\b`, "reports, returns, sends, names"},
	{`\b(hears?|heard)\b`, "receives, is notified"},
	{`\b(whoever|nobody|anew|for good|goes on|go on|went on)\b`, "name the caller; again; permanently; continues"},
	{`\b(rooms?|floors?|doors?)\b`, "package, layer, endpoint"},
	{`\b(fleet|keepers?)\b`, "all agents, the index"},
	{`\b(un)?seal(s|ed|ing)?\b`, "encrypt, encrypted"},
	{`\b(shelf|shelved|shelve|spill|spilled)\b`, "blob, offload"},
	{`\b(crew|hush|hushed|stir|heed|letters?)\b`, "dispatcher, drained, wake, apply, outbox message"},
	{`\b(spent ids?|spends)\b`, "processed ids, the deduplication window"},
	{`\b(thrown away|throws away|threw away)\b`, "dropped"},
	{`\b(foreign to whom|of which there were|stands? still)\b`, "rewrite the sentence"},
}

/**
 * Escapes text from the network for logs and terminals, against log injection: a client must not start a line, end a
 * quoted field, or send control sequences to a terminal. Plain text is returned unchanged and uncopied.
 */

/** Matches everything but printable ASCII; quotation mark and backslash are not plain. */
const NOT_PLAIN = /[^ !#-[\]-~]/
const NOT_PLAIN_ALL = /[^ !#-[\]-~]/g

/** Controls, line separators (U+2028, U+2029), and bidirectional marks, which reorder text on a terminal. */
const CONTROLS = /[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g

/** Escapes for the inside of a JSON string, in pure ASCII. */
export function escapeJson(text: string): string {
  return NOT_PLAIN.test(text) ? text.replace(NOT_PLAIN_ALL, char => `\\u${hex(char).padStart(4, '0')}`) : text
}

/** Escapes as `\xHH`, as web servers do in the quoted fields of their logs. */
export function escapeHex(text: string): string {
  return NOT_PLAIN.test(text) ? text.replace(NOT_PLAIN_ALL, hexEscape) : text
}

/** Escapes control characters only, for text that becomes JSON or goes to a terminal. */
export function escapeControls(text: string): string {
  return text.replace(CONTROLS, hexEscape)
}

function hexEscape(char: string): string {
  const digits = hex(char)
  return digits.length > 2 ? `\\u${digits.padStart(4, '0')}` : `\\x${digits.padStart(2, '0')}`
}

function hex(char: string): string {
  return char.charCodeAt(0).toString(16)
}

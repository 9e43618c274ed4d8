/**
 * Keeps text from the network inside the field it belongs to: a client must not begin a line of its own, end a quoted
 * field, or send control sequences to the terminal on which somebody reads the log. Text with nothing to escape passes
 * unchanged and uncopied.
 */

/** Everything but printable ASCII without quotation mark and backslash. */
const NOT_PLAIN = /[^ !#-[\]-~]/
const NOT_PLAIN_ALL = /[^ !#-[\]-~]/g

/** Controls, and what reorders or breaks lines in a reader's eyes: U+2028, U+2029, bidirectional marks. */
const CONTROLS = /[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g

/** The inside of a JSON string in pure ASCII; `\u00HH` for bytes above it. */
export function escapeJson(text: string): string {
  return NOT_PLAIN.test(text) ? text.replace(NOT_PLAIN_ALL, char => `\\u${hex(char).padStart(4, '0')}`) : text
}

/** `\xHH`, as web servers write it between the quotation marks of a log field. */
export function escapeHex(text: string): string {
  return NOT_PLAIN.test(text) ? text.replace(NOT_PLAIN_ALL, hexEscape) : text
}

/** For the fields of events, which are escaped once more where they become JSON: only what is dangerous by itself. */
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

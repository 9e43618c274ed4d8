/** Meanings of error codes, as the gateway tells them when the page opens. */

let codes = {}
let phases = {}

export function setCodes(told) {
  codes = told.codes
  phases = told.phases
}

/** Codes of the transport, whose documented messages say little. */
const TRANSPORT = [101_000, 101_999]

/** In a few words; '' for an unknown code. */
export function messageOf(code) {
  const { message = '', description = '' } = codes[code] ?? {}
  return code >= TRANSPORT[0] && code <= TRANSPORT[1] ? description : message
}

/** Returns a text for a failed connection: what has failed, and when. */
export function meaningOf(side, base, state) {
  const { description = 'Other failures' } = codes[base] ?? {}
  const when = phases[side]?.[state] ?? `in state ${state}`
  return `${description}, ${when}`
}

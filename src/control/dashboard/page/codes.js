/** Meanings of error codes, as the gateway tells them when the page opens. */

let codes = {}
let phases = {}

export function setCodes(told) {
  codes = told.codes
  phases = told.phases
}

/** In a few words; '' for an unknown code. */
export function messageOf(code) {
  return codes[code]?.message ?? ''
}

/** Of a failed connection: what has failed, and when. */
export function meaningOf(side, base, state) {
  const { description = 'Other failures' } = codes[base] ?? {}
  const when = phases[side]?.[state] ?? `in state ${state}`
  return `${description}, ${when}`
}

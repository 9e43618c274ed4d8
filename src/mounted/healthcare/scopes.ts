/**
 * SMART scopes, version 2 and 1: `system/HealthcareService.rs`, `user/*.cruds`, `patient/HealthcareService.read`. Any
 * of the three prefixes is enough. A scope with a query is never widened: it grants nothing (D322).
 */
import type { ScopeLetter } from './interaction.ts'

const SCOPE = /^(?:patient|user|system)\/(?:HealthcareService|\*)\.(read|write|\*|(?=[cruds])c?r?u?d?s?)$/
const LETTERS_OF_V1: Readonly<Record<string, string>> = { read: 'rs', write: 'cud', '*': 'cruds' }

/** Letters of a token, by its list of scopes, which is one object for all requests with the token. */
const known = new WeakMap<readonly string[], ReadonlySet<ScopeLetter>>()

export function grantedLetters(scopes: readonly string[]): ReadonlySet<ScopeLetter> {
  let letters = known.get(scopes)
  if (letters === undefined) {
    letters = new Set(scopes.flatMap(lettersOf))
    known.set(scopes, letters)
  }
  return letters
}

function lettersOf(scope: string): ScopeLetter[] {
  const found = SCOPE.exec(scope)?.[1] ?? ''
  return [...(LETTERS_OF_V1[found] ?? found)] as ScopeLetter[]
}

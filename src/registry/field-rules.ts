/** What texts may be that name something. */
import { RegistryRefusal } from './registry.ts'

/** Characters: what the columns hold. */
const NAME_MAX = 255
const TEXT_MAX = 32_768

const CONTROL = /[\u0000-\u001f\u007f-\u009f\u2028\u2029]/

/** Of one line, and neither empty nor begun or ended with a space. Throws RegistryRefusal. */
export function mustBeName(field: string, value: string, longest = NAME_MAX): void {
  if (value === '' || value !== value.trim()) throw refused(field, 'must not be empty, nor begin or end with a space')
  if (value.length > longest) throw refused(field, `must have ${longest} characters at most`)
  if (CONTROL.test(value)) throw refused(field, 'must not hold control characters')
  if (!value.isWellFormed()) throw refused(field, 'must be Unicode')
}

export function mustBeText(field: string, value: string): void {
  if (value.length > TEXT_MAX) throw refused(field, `must have ${TEXT_MAX} characters at most`)
  // No database but the embedded one takes it.
  if (value.includes('\u0000') || !value.isWellFormed()) throw refused(field, 'must be text')
}

/** Of lists and maps: written as one text. */
export function writtenJson(field: string, value: unknown): string {
  const text = JSON.stringify(value)
  mustBeText(field, text)
  return text
}

function refused(field: string, must: string): RegistryRefusal {
  return new RegistryRefusal('invalid', field, `${field} ${must}`)
}

export function missing(what: string, field = ''): RegistryRefusal {
  return new RegistryRefusal('missing', field, `there is no such ${what}`)
}

export function taken(what: string, field: string): RegistryRefusal {
  return new RegistryRefusal('exists', field, `there is ${what} already`)
}

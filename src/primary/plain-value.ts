/** Values of keys on their way out of the process: without secrets, and such as JSON and a line of text take them. */
import { masked, show } from '../config/fault.ts'

/** Of a key that is secret, only whether it is set. */
export function plainValue(value: unknown, isSecret: boolean): unknown {
  if (!isSecret) return withoutCredentials(value)
  return value === '' ? '(not set)' : '(set)'
}

/** Of URLs, that is; and whole numbers as JSON has them. */
export function withoutCredentials(value: unknown): unknown {
  const plain = (_: string, part: unknown): unknown => {
    if (typeof part === 'bigint') return Number(part)
    return typeof part === 'string' ? masked(part) : part
  }
  return JSON.parse(JSON.stringify(value, plain))
}

/** What `plainValue` has made, as TOML writes it. */
export function plainSaid(value: unknown, isSecret: boolean): string {
  return isSecret ? String(value) : show(value)
}

/** Values of keys as they leave the process: without secrets, in a form that JSON and a line of text can hold. */
import { formatValue, maskCredentials } from '../config/diagnostics.ts'
/** A secret becomes `(set)` or `(not set)`. */
export function plainValue(value: unknown, isSecret: boolean): unknown {
  if (!isSecret) return withoutCredentials(value)
  return value === '' ? '(not set)' : '(set)'
}

/** Masks credentials in URLs; whole numbers become JSON numbers. */
export function withoutCredentials(value: unknown): unknown {
  const plain = (_: string, part: unknown): unknown => {
    if (typeof part === 'bigint') return Number(part)
    return typeof part === 'string' ? maskCredentials(part) : part
  }
  return JSON.parse(JSON.stringify(value, plain))
}

/** A result of `plainValue` as TOML writes it. */
export function plainText(value: unknown, isSecret: boolean): string {
  return isSecret ? String(value) : formatValue(value)
}

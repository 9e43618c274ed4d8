/** Values from outside the file: environment variables, files, and the `[secrets]` of the reference platform. */
import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs'
import { isAbsolute, resolve } from 'node:path'
import { lastPart } from './nearest.ts'
import { type ReferencedValue, UnresolvedReference } from './references.ts'
import { labelOf } from './source-file.ts'

const SECRET_NAME = /pass|secret|token|key|credential/i

/** True if a name that the operator chose, of a variable or property, stands for a secret that is never shown. */
export function isSecretName(name: string): boolean {
  return SECRET_NAME.test(name)
}

/** True if a key that only references read, and the catalogue does not have, holds a secret. */
export function isSecretOperatorKey(path: string): boolean {
  return isSecretName(lastPart(path)) || path.startsWith(`${SECRETS_SECTION}.`)
}

/** Throws UnresolvedReference. */
export function environmentValue(name: string): ReferencedValue {
  // Properties of Object.prototype are no variables.
  const value = Object.hasOwn(process.env, name) ? process.env[name] : undefined
  if (value !== undefined) return { value, secret: isSecretName(name) }
  const bare = name.split(':')[0]!
  const hint =
    bare !== name && bare !== ''
      ? `a default cannot be given here: write $env{${bare}}, and set the variable before the start`
      : 'set it before the start, or write the value here'
  throw new UnresolvedReference(`there is no environment variable ${name}`, hint)
}

const FILE_BYTES_MAX = 65_536

/** The text of a file, always secret, never expanded. `folder`: base of relative paths. Throws UnresolvedReference. */
export function fileValue(path: string, folder: string): ReferencedValue {
  const whole = resolve(folder, path)
  const label = labelOf(whole)
  if (path === '') throw new UnresolvedReference('$file{} names no file', 'write $file{PATH}')
  try {
    return { value: withoutLineEnd(readText(whole, label)), secret: true }
  } catch (error) {
    if (error instanceof UnresolvedReference || !(error instanceof Error)) throw error
    const code = 'code' in error ? String(error.code) : ''
    if (code === 'ENOENT' || code === 'ENOTDIR') {
      const base = isAbsolute(path) ? '' : '; relative paths start from the folder of deployment.toml'
      throw new UnresolvedReference(`there is no file ${label}`, `put it there${base}`)
    }
    if (code === 'ERR_ENCODING_INVALID_ENCODED_DATA') {
      throw new UnresolvedReference(
        `${label} is not UTF-8`,
        'a value is text; keep binary content in a file of its own',
      )
    }
    throw new UnresolvedReference(`${label} cannot be read: ${code || error.message}`, 'let the gateway user read it')
  }
}

function readText(path: string, label: string): string {
  // Non-blocking: opening a named pipe without a writer would wait for ever.
  const file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
  try {
    const status = fstatSync(file)
    if (status.isDirectory()) throw new UnresolvedReference(`${label} is a folder`, 'name a file in it')
    if (!status.isFile()) throw new UnresolvedReference(`${label} is not a regular file`, 'name a file')
    const buffer = Buffer.alloc(FILE_BYTES_MAX + 1)
    let length = 0
    for (let read = -1; read !== 0 && length < buffer.length; length += read) {
      read = readSync(file, buffer, length, buffer.length - length, null)
    }
    if (length > FILE_BYTES_MAX) {
      throw new UnresolvedReference(`${label} is longer than 64 KiB`, 'a value is at most that long')
    }
    return new TextDecoder('utf-8', { fatal: true }).decode(buffer.subarray(0, length))
  } finally {
    closeSync(file)
  }
}

/** Editors end a file with one. */
function withoutLineEnd(text: string): string {
  return text.replace(/\r?\n$/, '')
}

/** The section of the reference platform that holds secrets by alias. */
export const SECRETS_SECTION = 'secrets'

/** `$secret{alias}`: only text in brackets is plain, all other is encrypted. Throws UnresolvedReference. */
export function secretValue(alias: string, given: unknown): ReferencedValue {
  const [, plain] = typeof given === 'string' ? (/^\[([\s\S]*)\]$/.exec(given) ?? []) : []
  if (plain !== undefined) return { value: plain, secret: true }
  const problem =
    given === undefined
      ? `[${SECRETS_SECTION}] has no ${alias}`
      : `${SECRETS_SECTION}.${alias} is not plain text in brackets`
  throw new UnresolvedReference(problem, 'there is no vault here: write $env{NAME} or $file{PATH}')
}

/** Values from elsewhere: variables of the environment, files, and secrets as the reference platform has them. */
import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs'
import { isAbsolute, resolve } from 'node:path'
import { lastPart } from './nearest.ts'
import { type Found, Unresolved } from './references.ts'
import { labelOf } from './source-file.ts'

const SECRET_NAME = /pass|secret|token|key|credential/i

/** Whether what goes by a name that an operator chose, a variable or a property, is kept from the eye. */
export function looksSecret(name: string): boolean {
  return SECRET_NAME.test(name)
}

/** The same of a key that the catalogue does not have, which only references read. */
export function isOwnSecret(path: string): boolean {
  return looksSecret(lastPart(path)) || path.startsWith(`${SECRETS}.`)
}

export function environmentValue(name: string): Found {
  // Names of the prototype are no variables.
  const value = Object.hasOwn(process.env, name) ? process.env[name] : undefined
  if (value !== undefined) return { value, secret: looksSecret(name) }
  const plain = name.split(':')[0]!
  const remedy =
    plain !== name && plain !== ''
      ? `a default cannot be given here: write $env{${plain}}, and set the variable before the start`
      : 'set it before the start, or write the value here'
  throw new Unresolved(`there is no environment variable ${name}`, remedy)
}

const LONGEST_BYTES = 65_536

/** Literal, and a secret whatever it is. `folder`: what a relative path starts from. */
export function fileValue(path: string, folder: string): Found {
  const whole = resolve(folder, path)
  const label = labelOf(whole)
  if (path === '') throw new Unresolved('$file{} names no file', 'write $file{PATH}')
  try {
    return { value: withoutLineEnd(readText(whole, label)), secret: true }
  } catch (error) {
    if (error instanceof Unresolved || !(error instanceof Error)) throw error
    const code = 'code' in error ? String(error.code) : ''
    if (code === 'ENOENT' || code === 'ENOTDIR') {
      const start = isAbsolute(path) ? '' : '; relative paths start from the folder of deployment.toml'
      throw new Unresolved(`there is no file ${label}`, `put it there${start}`)
    }
    if (code === 'ERR_ENCODING_INVALID_ENCODED_DATA') {
      throw new Unresolved(`${label} is not UTF-8`, 'a value is text; keep binary content in a file of its own')
    }
    throw new Unresolved(`${label} cannot be read: ${code || error.message}`, 'let the user of the gateway read it')
  }
}

function readText(path: string, label: string): string {
  // Without waiting, because nobody may ever write to a pipe of that name.
  const file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
  try {
    const status = fstatSync(file)
    if (status.isDirectory()) throw new Unresolved(`${label} is a folder`, 'name a file in it')
    if (!status.isFile()) throw new Unresolved(`${label} is not a regular file`, 'name a file')
    const buffer = Buffer.alloc(LONGEST_BYTES + 1)
    let length = 0
    for (let read = -1; read !== 0 && length < buffer.length; length += read) {
      read = readSync(file, buffer, length, buffer.length - length, null)
    }
    if (length > LONGEST_BYTES) throw new Unresolved(`${label} is longer than 64 KiB`, 'a value is at most that long')
    return new TextDecoder('utf-8', { fatal: true }).decode(buffer.subarray(0, length))
  } finally {
    closeSync(file)
  }
}

/** Editors put one at the end. */
function withoutLineEnd(text: string): string {
  return text.replace(/\r?\n$/, '')
}

/** The section of the reference platform in which secrets stand by their aliases. */
export const SECRETS = 'secrets'

/** `$secret{alias}`: what stands in brackets is plain; anything else was encrypted by a tool of that platform. */
export function plainSecret(alias: string, given: unknown): Found {
  const [, plain] = typeof given === 'string' ? (/^\[([\s\S]*)\]$/.exec(given) ?? []) : []
  if (plain !== undefined) return { value: plain, secret: true }
  const why = given === undefined ? `[${SECRETS}] has no ${alias}` : `${SECRETS}.${alias} is not plain text in brackets`
  throw new Unresolved(why, 'there is no vault here: write $env{NAME} or $file{PATH}')
}

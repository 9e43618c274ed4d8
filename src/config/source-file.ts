/** Reading a file of the home folder as text, and naming it as a person would. */
import { readFileSync } from 'node:fs'
import { relative, resolve } from 'node:path'
import type { Fault } from './fault.ts'

interface SourceFile {
  readonly label: string
  readonly text: string
  /** Why the file, which is there, cannot be read. */
  readonly fault: Fault | undefined
}

/** Code of an error -> what is wrong, and what to do. */
const UNREADABLE: Readonly<Record<string, readonly [reason: string, remedy: string]>> = {
  ERR_ENCODING_INVALID_ENCODED_DATA: ['it is not UTF-8', 'save it as UTF-8'],
  EISDIR: ['it is a folder', 'put a file there'],
}

/** Undefined when there is no such file. */
export function readSource(path: string): SourceFile | undefined {
  const label = labelOf(path)
  try {
    return { label, text: new TextDecoder('utf-8', { fatal: true }).decode(readFileSync(path)), fault: undefined }
  } catch (error) {
    if (!(error instanceof Error)) throw error
    const code = 'code' in error ? String(error.code) : ''
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined
    const [reason, remedy] = UNREADABLE[code] ?? [code || error.message, 'let the user of the gateway read it']
    const fault = { where: label, key: '', given: '', expected: `cannot be read: ${reason}`, remedy }
    return { label, text: '', fault }
  }
}

/** A path as a person would type it from where the command was started. */
export function labelOf(path: string): string {
  const whole = resolve(path)
  const near = relative(process.cwd(), whole)
  if (near === '') return '.'
  return near.startsWith('..') ? whole : near
}

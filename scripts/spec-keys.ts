/**
 * Lists every configuration key that the specification documents, for a test that compares the catalogue with it. The
 * specification is not part of this repository, but the list is.
 *
 *   node scripts/spec-keys.ts SPEC.md            one line per key
 *   node scripts/spec-keys.ts SPEC.md --json     as data
 *   node scripts/spec-keys.ts SPEC.md --write    to test/config/spec-keys.json
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { ADAPTERS } from './spec-keys/adapters.ts'
import { extractKeys, type SpecKey } from './spec-keys/extract.ts'
import { SpecError } from './spec-keys/markdown.ts'

const TARGET = new URL('../test/config/spec-keys.json', import.meta.url)
const USAGE = 'usage: node scripts/spec-keys.ts SPEC.md [--json | --write]\n'

process.exitCode = main(process.argv.slice(2))

function main(given: string[]): number {
  const { file, isJson, isWritten } = argumentsOf(given)
  if (file === '') {
    process.stderr.write(USAGE)
    return 2
  }
  try {
    const keys = extractKeys(readFileSync(file, 'utf8'), ADAPTERS)
    if (isWritten) writeFileSync(TARGET, asJson(keys))
    else process.stdout.write(isJson ? asJson(keys) : keys.map(asLine).join(''))
    return 0
  } catch (error) {
    const isSystemError = error instanceof Error && 'syscall' in error
    if (!(error instanceof SpecError) && !isSystemError) throw error
    const place = error instanceof SpecError ? `${file}:${error.line}: ` : ''
    process.stderr.write(`${place}${error.message}\n`)
    return 1
  }
}

/** `file` is '' for invalid arguments. */
function argumentsOf(args: string[]): { file: string; isJson: boolean; isWritten: boolean } {
  const options = { json: { type: 'boolean' }, write: { type: 'boolean' } } as const
  try {
    const { values, positionals } = parseArgs({ args, options, allowPositionals: true })
    const file = positionals.length === 1 ? positionals[0]! : ''
    return { file, isJson: values.json ?? false, isWritten: values.write ?? false }
  } catch {
    return { file: '', isJson: false, isWritten: false }
  }
}

/** Leaves out properties that the specification does not state. */
function asJson(keys: readonly SpecKey[]): string {
  const stated = keys.map(key => Object.fromEntries(Object.entries(key).filter(([, value]) => isStated(value))))
  // The formatter wants lists on one line.
  const inOneLine = (list: string): string =>
    list.replace(/\s*\n\s*/g, ' ').replace(/^\[ | \]$/g, bracket => bracket.trim())
  return `${JSON.stringify(stated, null, 2).replace(/\[(?:\s*"[^"]*",?)+\s*\]/g, inOneLine)}\n`
}

function isStated(value: string | number | boolean | readonly string[]): boolean {
  return value !== '' && value !== false && !(Array.isArray(value) && value.length === 0)
}

function asLine({ section, repeated, key, line, ...rest }: SpecKey): string {
  const stated = Object.entries(rest).filter(([, value]) => isStated(value))
  const listed = stated.map(([name, value]) => (value === true ? name : `${name} ${value}`)).join('; ')
  return `${line}\t${repeated ? `[[${section}]]` : `[${section}]`} ${key}\t${listed}\n`
}

/**
 * Lists every configuration key that the specification documents, so that a test can hold the catalogue to it. The
 * specification is no part of this repository; what is kept of it is the list.
 *
 *   node scripts/spec-keys.ts SPEC.md            one line per key
 *   node scripts/spec-keys.ts SPEC.md --json     as data
 *   node scripts/spec-keys.ts SPEC.md --write    to test/config/spec-keys.json
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { ADAPTERS } from './spec-keys/adapters.ts'
import { extractKeys, type SpecKey } from './spec-keys/extract.ts'
import { SpecFault } from './spec-keys/markdown.ts'

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
    const isOfTheSystem = error instanceof Error && 'syscall' in error
    if (!(error instanceof SpecFault) && !isOfTheSystem) throw error
    const place = error instanceof SpecFault ? `${file}:${error.line}: ` : ''
    process.stderr.write(`${place}${error.message}\n`)
    return 1
  }
}

/** No file where the arguments make no sense. */
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

/** What the specification does not say of a key is left out. */
function asJson(keys: readonly SpecKey[]): string {
  const said = keys.map(key => Object.fromEntries(Object.entries(key).filter(([, value]) => isSaid(value))))
  // Lists stand on one line, as the formatter wants them.
  const inOneLine = (list: string): string =>
    list.replace(/\s*\n\s*/g, ' ').replace(/^\[ | \]$/g, bracket => bracket.trim())
  return `${JSON.stringify(said, null, 2).replace(/\[(?:\s*"[^"]*",?)+\s*\]/g, inOneLine)}\n`
}

function isSaid(value: string | number | boolean | readonly string[]): boolean {
  return value !== '' && value !== false && !(Array.isArray(value) && value.length === 0)
}

function asLine({ section, repeated, key, line, ...rest }: SpecKey): string {
  const facts = Object.entries(rest).filter(([, value]) => isSaid(value))
  const listed = facts.map(([name, value]) => (value === true ? name : `${name} ${value}`)).join('; ')
  return `${line}\t${repeated ? `[[${section}]]` : `[${section}]`} ${key}\t${listed}\n`
}

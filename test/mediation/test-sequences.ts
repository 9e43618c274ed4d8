/** Parses and runs sequences for tests, given as the elements within `<sequence>`. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Diagnostics, formatDiagnostic } from '../../src/config/diagnostics.ts'
import { beginTurn } from '../../src/mediation/flow-limits.ts'
import { formatResponse } from '../../src/mediation/formatter.ts'
import { Message } from '../../src/mediation/message.ts'
import type { SequencePlan } from '../../src/mediation/sequence-plan.ts'
import { parseSequence } from '../../src/mediation/sequence-parser.ts'
import { CompiledSequences } from '../../src/mediation/compiled-sequences.ts'
import type { Report } from '../../src/proxy/exchange/connection-context.ts'
import type { Value } from '../../src/mediation/value.ts'

const DECLARATIONS = [
  'xmlns="http://ws.apache.org/ns/synapse"',
  'xmlns:fn="http://www.w3.org/2005/xpath-functions"',
  'xmlns:syn="http://ws.apache.org/ns/synapse"',
  'xmlns:s11="http://schemas.xmlsoap.org/soap/envelope/"',
  'xmlns:s12="http://www.w3.org/2003/05/soap-envelope"',
  'xmlns:am="http://example.org/am"',
].join(' ')

/** Text of a sequence file; the steps begin in line 1. */
export function file(steps: string, name = 'one'): string {
  return `<sequence ${DECLARATIONS} name="${name}">${steps}</sequence>`
}

/** Text of the file of a template, without its namespaces. */
export function templateFile(text: string): string {
  return text.replace('<template', `<template ${DECLARATIONS}`)
}

interface ParsedFile {
  readonly plan: SequencePlan | undefined
  readonly errors: readonly string[]
  readonly warnings: readonly string[]
}

export async function parseFile(text: string, name = 'one'): Promise<ParsedFile> {
  const diagnostics = new Diagnostics()
  const plan = await parseSequence(name, `${name}.xml`, text, diagnostics)
  return {
    plan,
    errors: diagnostics.errors.map(formatDiagnostic),
    warnings: diagnostics.warnings.map(formatDiagnostic),
  }
}

/** Errors of the steps, as printed. */
export async function errorsOf(steps: string): Promise<readonly string[]> {
  return (await parseFile(file(steps))).errors
}

/** One test per row: one of the errors of the steps begins with this text. */
export function testRefusals(rows: readonly (readonly [steps: string, expected: string])[]): void {
  for (const [steps, expected] of rows) {
    test(`${steps} is refused`, async () => {
      const errors = await errorsOf(steps)
      assert.ok(
        errors.some(error => error.startsWith(`one.xml:1: ${expected}`)),
        errors.join('\n'),
      )
    })
  }
}

/** Plan of steps, of a whole sequence with onError, or of a template, without errors, as a reactor gets it. */
export async function planOf(steps: string, name = 'one'): Promise<SequencePlan> {
  const parsed = await parseFile(textOfFile(steps, name), name)
  assert.deepEqual(parsed.errors, [])
  return structuredClone(parsed.plan!)
}

function textOfFile(steps: string, name: string): string {
  if (steps.startsWith('<template')) return templateFile(steps)
  if (!steps.startsWith('<sequence onError=')) return file(steps, name)
  return steps.replace('<sequence', `<sequence ${DECLARATIONS} name="${name}"`)
}

interface Given {
  readonly properties?: Readonly<Record<string, Value>>
  /** Request fields by name in lower case. */
  readonly fields?: Readonly<Record<string, string>>
  readonly json?: unknown
  /** Further sequences by name. */
  readonly others?: Readonly<Record<string, string>>
}

interface Ran {
  readonly outcome: string
  readonly message: Message
  /** Level, event and fields. */
  readonly reports: readonly (readonly [string, string, Readonly<Record<string, string | number>>])[]
  readonly response: ReturnType<typeof formatResponse>
}

export async function run(
  steps: string,
  { properties = {}, fields = {}, json, others = {} }: Given = {},
): Promise<Ran> {
  const plans = [await planOf(steps)]
  for (const [name, text] of Object.entries(others)) plans.push(await planOf(text, name))
  const reports: [string, string, Record<string, string | number>][] = []
  const report = (...said: [string, string, Record<string, string | number>]) => void reports.push(said)
  const message = new Message(name => fields[name])
  for (const [name, value] of Object.entries(properties)) message.set('default', name, value)
  if (json !== undefined) message.payload = { kind: 'json', text: JSON.stringify(json) }
  // Earlier tests may have computed in the same turn.
  beginTurn()
  const outcome = new CompiledSequences(plans, report).run('one', message)
  return { outcome, message, reports, response: formatResponse(message, report) }
}

/** Sequences with the steps as `one`, and others by name. */
export async function compiled(
  steps: string,
  report: Report,
  others: Readonly<Record<string, string>> = {},
): Promise<CompiledSequences> {
  const plans = [await planOf(steps)]
  for (const [name, text] of Object.entries(others)) plans.push(await planOf(text, name))
  return new CompiledSequences(plans, report)
}

/** Causes of the reports. */
export function causes({ reports }: Ran): readonly (string | number | undefined)[] {
  return reports.map(([, , fields]) => fields.CAUSE_OF_ERROR)
}

/** Value of an expression as text, by way of `<property>`. */
export async function textFrom(expression: string, given?: Given): Promise<string> {
  const escaped = expression.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;')
  const ran = await run(`<property name="it" expression="${escaped}"/>`, given)
  assert.deepEqual(ran.reports, [])
  return String(ran.message.get('default', 'it'))
}

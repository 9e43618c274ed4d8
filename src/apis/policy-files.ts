/**
 * Throttling policies that a home declares: `policies/<level>/*.yaml`, one policy per file, as the admin REST API takes
 * it or as the reference platform exports it. Any error refuses the whole configuration, so that no limit is absent.
 */
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { type Diagnostic, formatValue } from '../config/diagnostics.ts'
import { nearest } from '../config/nearest.ts'
import { labelOf, readSource } from '../config/source-file.ts'
import { nameBasedUuid } from '../runtime/name-based-uuid.ts'
import { TimeSlices } from '../runtime/time-slices.ts'
import type { BodyPath, BodyProblem } from '../throttle/body-reader.ts'
import { ENABLING_KEYS } from '../throttle/condition-body.ts'
import type { DenyPolicy, PolicyLevel, PolicySet, ThrottlingPolicy } from '../throttle/policy.ts'
import { CUSTOM_POLICIES_MAX, customPolicies } from '../throttle/policy-index.ts'
import { POLICY_LEVELS, readDenyPolicy, readPolicy } from '../throttle/policy-body.ts'
import type { ConditionSettings } from '../throttle/throttle-plan.ts'
import { YamlFile } from './yaml-file.ts'

interface PolicyFiles {
  readonly set: PolicySet
  readonly errors: readonly Diagnostic[]
  readonly warnings: readonly Diagnostic[]
}

/** Folder of the home with a folder per level. */
export const POLICIES_FOLDER = 'policies'
const LEVELS: readonly (PolicyLevel | 'deny')[] = [...POLICY_LEVELS, 'deny']
const FILE = /\.(?:ya?ml|json)$/i
const FILES_MAX = 10_000
/** Members of an exported file around the policy. */
const ENVELOPE: readonly string[] = ['type', 'subtype', 'version', 'data']

/** Policies and diagnostics of all files. */
interface Reading {
  readonly conditions: ConditionSettings
  readonly policies: ThrottlingPolicy[]
  readonly denied: DenyPolicy[]
  readonly errors: Diagnostic[]
  readonly warnings: Diagnostic[]
  /** File and line by level and name, or by the content of a deny policy. */
  readonly declaredAt: Map<string, string>
}

/** In the order of levels and file names, in time slices. `conditions`: what the configuration enables. */
export async function readPolicies(home: string, conditions: ConditionSettings): Promise<PolicyFiles> {
  const reading: Reading = { conditions, policies: [], denied: [], errors: [], warnings: [], declaredAt: new Map() }
  const root = join(home, POLICIES_FOLDER)
  reportUnknownFolders(root, reading)
  const slices = new TimeSlices()
  for (const level of LEVELS) {
    for (const name of namesIn(join(root, level), reading.errors).filter(each => FILE.test(each))) {
      if (slices.isOver) await slices.next()
      readPolicyFile(join(root, level, name), level, reading)
    }
  }
  reportSurplus(reading)
  const { policies, denied, errors, warnings } = reading
  return { set: { policies, denied }, errors, warnings }
}

function namesIn(folder: string, errors: Diagnostic[]): readonly string[] {
  const error = (expected: string, hint: string): void => {
    errors.push({ where: labelOf(folder), key: '', given: '', expected, hint })
  }
  try {
    const names = readdirSync(folder).filter(name => !name.startsWith('.'))
    if (names.length <= FILES_MAX) return names.sort()
    error(`has more than ${FILES_MAX} files`, 'keep that many policies in a database')
  } catch (cause) {
    const { code = '' } = cause as NodeJS.ErrnoException
    if (code !== 'ENOENT') error(`cannot be read: ${code}`, 'make it readable')
  }
  return []
}

/** A policy in a misspelt folder, or beside the folders, would silently limit nobody. */
function reportUnknownFolders(root: string, { errors }: Reading): void {
  for (const name of namesIn(root, errors)) {
    if (LEVELS.some(level => level === name)) continue
    const guess = nearest(name, LEVELS)
    const expected = FILE.test(name) ? 'is in the folder of no level' : 'is the folder of no level'
    const hint = guess === '' ? `the folders are ${LEVELS.join(', ')}` : `did you mean ${guess}?`
    errors.push({ where: labelOf(join(root, name)), key: '', given: '', expected, hint })
  }
}

/** A custom policy beyond the number that applies would silently limit nobody. */
function reportSurplus({ policies, denied, declaredAt, errors }: Reading): void {
  const surplus = customPolicies({ policies, denied }, { policies: [], denied: [] }).slice(CUSTOM_POLICIES_MAX)
  const [first] = surplus
  if (first === undefined) return
  const where = declaredAt.get(`custom ${first.name}`)!
  const expected = `is beyond the ${CUSTOM_POLICIES_MAX} custom policies that apply, by name`
  const hint = `remove ${surplus.length} of ${POLICIES_FOLDER}/custom`
  errors.push({ where, key: 'policyName', given: formatValue(first.name), expected, hint })
}

function readPolicyFile(path: string, level: PolicyLevel | 'deny', reading: Reading): void {
  const source = readSource(path)
  if (source === undefined) return
  if (source.error !== undefined) {
    reading.errors.push(source.error)
    return
  }
  const file = new YamlFile(source.label, source.text)
  if (file.errors.length === 0) {
    const base = baseOf(file)
    const body = base.length === 0 ? file.root : file.value(base)
    if (level === 'deny') readDenied(file, base, body, reading)
    else readOne(file, base, readPolicy(level, body), reading)
  }
  reading.errors.push(...file.errors)
  reading.warnings.push(...file.warnings)
}

/** Path of the policy: an exported file has it in `data`. */
function baseOf(file: YamlFile): BodyPath {
  if (!file.has(['data'])) return []
  for (const name of file.keys([])) {
    if (ENVELOPE.includes(name)) continue
    file.error([name], undefined, 'is no member that is known here', 'write members of the policy below data')
  }
  return ['data']
}

function report(file: YamlFile, base: BodyPath, errors: readonly BodyProblem[]): void {
  for (const { path, given, expected, hint } of errors) file.error([...base, ...path], given, expected, hint)
}

function readOne(
  file: YamlFile,
  base: BodyPath,
  { value: policy, errors }: ReturnType<typeof readPolicy>,
  reading: Reading,
): void {
  report(file, base, errors)
  if (errors.length > 0) return
  declare(file, [...base, 'policyName'], `${policy.level} ${policy.name}`, policy.name, reading)
  if (policy.level === 'advanced') warnOfConditions(file, base, policy, reading.conditions)
  reading.policies.push(policy)
}

function warnOfConditions(
  file: YamlFile,
  base: BodyPath,
  { groups }: Extract<ThrottlingPolicy, { level: 'advanced' }>,
  enabled: ConditionSettings,
): void {
  groups.forEach(({ conditions }, group) => {
    conditions.forEach(({ type }, at) => {
      if (type === 'address' || type === 'range' || enabled[type]) return
      const path = [...base, 'conditionalGroups', group, 'conditions', at, 'type']
      const hint = `set ${ENABLING_KEYS[type]} = true`
      file.warn(path, file.value(path), 'is a condition that is not enabled: its group does not apply', hint)
    })
  })
}

function readDenied(file: YamlFile, base: BodyPath, body: unknown, reading: Reading): void {
  const { value: policy, errors } = readDenyPolicy(body)
  report(file, base, errors)
  if (errors.length > 0) return
  const { type, value, inverted } = policy
  const identity = [type, value, String(inverted)]
  declare(file, [...base, 'conditionValue'], `deny ${identity.join(' ')}`, value, reading)
  reading.denied.push({ id: nameBasedUuid('file', 'deny', ...identity), ...policy })
}

function declare(file: YamlFile, path: BodyPath, identity: string, given: string, { declaredAt }: Reading): void {
  const other = declaredAt.get(identity)
  if (other === undefined) declaredAt.set(identity, file.where(path))
  else file.error(path, given, `is declared at ${other} already`, 'declare it once')
}

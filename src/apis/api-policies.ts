/**
 * The policies that an API uses: `apiPolicies` and the `operationPolicies` of its operations. Each use becomes a
 * sequence; uses that are equal share one.
 */
import type { Diagnostics } from '../config/diagnostics.ts'
import { nearest } from '../config/nearest.ts'
import { type Flow, type FlowNames, FLOWS, NO_FLOW_NAMES } from './api-definition.ts'
import { BUILT_IN_NAMES, builtInPolicy } from './built-in-policies.ts'
import type { BuiltInPolicy, PolicyParameter, PolicyValues } from './policy-parameters.ts'
import { isDestination } from './endpoints.ts'
import type { Operations } from './operations.ts'
import { OwnPolicies, type OwnPolicy } from './own-policies.ts'
import type { ProjectFolder } from './project-folder.ts'
import { type SequenceSource, sequenceText } from './project-sequences.ts'
import type { Path, YamlFile } from './yaml-file.ts'

interface UsedPolicies {
  readonly sources: readonly SequenceSource[]
  /** Policies of the whole API. */
  readonly ofApi: FlowNames
  /** Policies of operations, by `VERB template`. */
  readonly byOperation: Readonly<Record<string, FlowNames>>
}

/** Versions in which the reference platform ships its policies; a later one is of its operator. */
const SHIPPED_VERSION = /^v?[1-3](?:\.\d+)*$/i
/** Most uses of policies in one API, over all operations. */
const USES_MAX = 20_000

/** `operations`: those of the project; undefined where they are none of requests (GraphQL), and where it has none. */
export function readPolicies(
  file: YamlFile,
  project: ProjectFolder,
  operations: Operations | undefined,
  found: Diagnostics,
): UsedPolicies {
  const own = new OwnPolicies(project, found)
  const reader = new PolicyReader(file, own, found)
  const ofApi = reader.flows(['data', 'apiPolicies'])
  const byOperation = operations === undefined ? {} : policiesOfOperations(file, reader, operations)
  if (operations === undefined) refuseOfFields(file)
  own.warnOfUnused()
  return { sources: reader.sources, ofApi, byOperation }
}

function policiesOfOperations(
  file: YamlFile,
  reader: PolicyReader,
  operations: Operations,
): Readonly<Record<string, FlowNames>> {
  const byOperation: Record<string, FlowNames> = {}
  const existing = new Set(operations.all.map(({ verb, template }) => `${verb} ${template}`))
  for (const at of operationsWithPolicies(file)) {
    const flows = reader.flows([...at, 'operationPolicies'])
    if (FLOWS.every(flow => flows[flow].length === 0)) continue
    const key = operations.keyOf(file.optional([...at, 'verb']), file.optional([...at, 'target']))
    // A diagnostic tells of an operation that is left out. Both directions of a topic are one operation.
    if (existing.has(key)) byOperation[key] = joined(byOperation[key] ?? NO_FLOW_NAMES, flows)
  }
  return byOperation
}

/** A query may ask for many fields, so no flow belongs to one of them: a check that is attached there would not run. */
function refuseOfFields(file: YamlFile): void {
  const at = operationsWithPolicies(file).find(each =>
    FLOWS.some(flow => file.hasContent([...each, 'operationPolicies', flow])),
  )
  if (at === undefined) return
  const hint = 'attach them to the whole API as data.apiPolicies'
  file.error([...at, 'operationPolicies'], undefined, 'do not run for single fields of a query', hint)
}

function operationsWithPolicies(file: YamlFile): readonly Path[] {
  const list = file.value(['data', 'operations'])
  if (!Array.isArray(list)) return []
  return list.flatMap((operation: unknown, item) => {
    const hasPolicies = typeof operation === 'object' && operation !== null && 'operationPolicies' in operation
    return hasPolicies ? [['data', 'operations', item]] : []
  })
}

function joined(one: FlowNames, other: FlowNames): FlowNames {
  const of = (flow: Flow): readonly string[] => [...one[flow], ...other[flow]]
  return { request: of('request'), response: of('response'), fault: of('fault') }
}

class PolicyReader {
  readonly sources: SequenceSource[] = []
  readonly #file: YamlFile
  readonly #own: OwnPolicies
  readonly #found: Diagnostics
  /** Names of sequences by policy, flow and values. */
  readonly #known = new Map<string, string>()
  /** Number of sequences by policy. */
  readonly #ranks = new Map<string, number>()
  #uses = 0

  constructor(file: YamlFile, own: OwnPolicies, found: Diagnostics) {
    this.#file = file
    this.#own = own
    this.#found = found
  }

  flows(at: Path): FlowNames {
    if (!this.#file.hasContent(at)) return NO_FLOW_NAMES
    return {
      request: this.#namesOf(at, 'request'),
      response: this.#namesOf(at, 'response'),
      fault: this.#namesOf(at, 'fault'),
    }
  }

  /** Names of the sequences of one flow, sorted by `order`, else as listed. */
  #namesOf(flows: Path, flow: Flow): readonly string[] {
    const list = [...flows, flow]
    const length = this.#file.lengthOf(list)
    if (length === undefined && this.#file.hasContent(list)) {
      this.#file.error(list, undefined, 'expected a list', 'begin each policy with "-"')
    }
    const order = (item: number): number => Number(this.#file.optional([...list, item, 'order']) || item + 1)
    const items = Array.from({ length: length ?? 0 }, (_, item) => item).sort((one, two) => order(one) - order(two))
    return items.flatMap(item => this.#use([...list, item], flow) ?? [])
  }

  /** Returns the name of the sequence of one use, undefined after an error. */
  #use(at: Path, flow: Flow): string | undefined {
    if (++this.#uses > USES_MAX) {
      const hint = 'attach policies to the API instead of to each operation'
      if (this.#uses === USES_MAX + 1) this.#file.error(at, undefined, `is more than ${USES_MAX} policies`, hint)
      return undefined
    }
    const name = this.#file.text([...at, 'policyName'])?.trim()
    const version = this.#file.optional([...at, 'policyVersion']) || 'v1'
    if (name === undefined) return undefined
    const policy = this.#policy(at, name, version)
    if (policy === undefined) return undefined
    if (!policy.flows.includes(flow)) {
      const hint = `its flows are ${policy.flows.join(', ')}`
      this.#file.error([...at, 'policyName'], name, `does not run in the ${flow} flow`, hint)
      return undefined
    }
    const values = this.#values([...at, 'parameters'], policy.parameters)
    if (values === undefined) return undefined
    if ('elements' in policy) this.#warnOfDestination(at, policy, values)
    return this.#sequence(at, `${name}_${version}`, flow, values, policy)
  }

  #warnOfDestination(at: Path, { destination }: BuiltInPolicy, values: PolicyValues): void {
    const url = destination === undefined ? undefined : values.get(destination)
    if (url === undefined || !/^\w+:\/\//.test(url) || isDestination(this.#file)) return
    const hint = 'write endpoint_type: default where policies choose the backend'
    this.#file.warn([...at, 'parameters', destination!], url, 'has no effect: the API has endpoints', hint)
  }

  /** Returns the policy of a use (D255), undefined after an error. */
  #policy(at: Path, name: string, version: string): OwnPolicy | BuiltInPolicy | undefined {
    const built = builtInPolicy(name)
    const shipped = SHIPPED_VERSION.test(version) ? built : undefined
    if (shipped !== undefined && this.#file.optional([...at, 'policyType']).toLowerCase() !== 'api') {
      this.#own.passOver(name, version)
      return shipped
    }
    const own = this.#own.find(name, version)
    if (own === null) return undefined
    const policy = own ?? shipped
    if (policy !== undefined) return policy
    if (built === undefined) return this.#unknown(at, name, version)
    const hint = `add Policies/${name}_${version}.yaml and .j2, or write v1 for the policy of the gateway`
    this.#file.error([...at, 'policyVersion'], version, `is no version of ${name} that the gateway has`, hint)
    return undefined
  }

  #unknown(at: Path, name: string, version: string): undefined {
    const known = [...new Set([...this.#own.names.map(one => one.replace(/_v[\d.]+$/, '')), ...BUILT_IN_NAMES])]
    const guess = nearest(name, known)
    const add = `add Policies/${name}_${version}.yaml and .j2`
    if (/^cors/i.test(name)) {
      this.#file.error([...at, 'policyName'], name, 'is not a policy', `write data.corsConfiguration, or ${add}`)
      return undefined
    }
    const hint = guess === '' ? `known policies are ${known.join(', ')}; or ${add}` : `did you mean ${guess}? Or ${add}`
    this.#file.error([...at, 'policyName'], name, 'is not a policy', hint)
    return undefined
  }

  #sequence(
    at: Path,
    policy: string,
    flow: Flow,
    values: PolicyValues,
    definition: OwnPolicy | BuiltInPolicy,
  ): string | undefined {
    const key = JSON.stringify([policy, 'elements' in definition ? flow : '', ...values])
    const known = this.#known.get(key)
    if (known !== undefined) return known
    const rank = (this.#ranks.get(policy) ?? 0) + 1
    const name = rank === 1 ? policy : `${policy}#${rank}`
    const isOwn = 'sequence' in definition
    const text = isOwn
      ? definition.sequence(name, values, this.#found)
      : sequenceText(name, definition.elements(values, flow))
    if (text === undefined) return undefined
    const label = isOwn ? definition.label : `${this.#file.where([...at, 'policyName'])} ${policy}`
    this.#known.set(key, name)
    this.#ranks.set(policy, rank)
    this.sources.push({ name, label, text })
    return name
  }

  /** Returns the parameters of a use with their defaults, undefined after an error. */
  #values(given: Path, parameters: readonly PolicyParameter[]): PolicyValues | undefined {
    const file = this.#file
    // Some tools write a list with one map.
    const at = file.lengthOf(given) === 1 ? [...given, 0] : given
    const before = file.errors.length
    const names = parameters.map(({ name }) => name)
    for (const name of file.keys(at)) {
      if (names.includes(name)) continue
      const guess = nearest(name, names)
      const all = names.length === 0 ? 'the policy has none' : `its parameters are ${names.join(', ')}`
      file.error(
        [...at, name],
        undefined,
        'is not a parameter of the policy',
        guess === '' ? all : `did you mean ${guess}?`,
      )
    }
    const values = new Map<string, string>()
    for (const { name, isRequired, fallback, pattern, isSecret, inert, hint = 'add it' } of parameters) {
      const path = [...at, name]
      const value = file.value(path)
      if (typeof value === 'object') file.error(path, undefined, 'expected text', 'write one value')
      const text = value === undefined ? fallback : String(value)
      if (inert !== undefined && text !== '' && text !== fallback) file.warn(path, text, 'has no effect', inert)
      if (text === '' && isRequired) file.error(path, undefined, 'is missing', hint)
      else if (text !== '' && pattern !== null && !pattern.test(text)) {
        file.error(path, isSecret ? undefined : text, 'is not a valid value', `expected ${pattern.source}`)
      }
      if (value !== undefined || fallback !== '') values.set(name, text)
    }
    return file.errors.length === before ? values : undefined
  }
}

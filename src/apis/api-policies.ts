/**
 * The policies that an API uses: `apiPolicies` and the `operationPolicies` of its operations. Each use becomes a
 * sequence; uses that are equal share one.
 */
import { abbreviatedList, type Diagnostics } from '../config/diagnostics.ts'
import { nearest } from '../config/nearest.ts'
import { type Flow, type FlowNames, FLOWS, NO_FLOW_NAMES } from './api-definition.ts'
import { BUILT_IN_NAMES, builtInPolicy } from './built-in-policies.ts'
import type { BuiltInPolicy, PolicyParameter, PolicyValues } from './policy-parameters.ts'
import { isDestination } from './endpoints.ts'
import type { Operations } from './operations.ts'
import { OwnPolicies, type OwnPolicy } from './own-policies.ts'
import { sequenceName } from './policy-names.ts'
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
/** A variable in the path of a policy, in both spellings of exports. */
const PATH_VARIABLE = /\{(?:uri\.var\.)?([\w.-]+)\}/g
/** Names that a diagnostic shows. */
const NAMES_SHOWN = 10
/** Most uses of policies in one API, over all operations. */
const USES_MAX = 20_000

/**
 * `operations`: those of the project; undefined where they are none of requests (GraphQL), and where it has none.
 * `paths`: the context of the API and the templates of its resources.
 */
export function readPolicies(
  file: YamlFile,
  project: ProjectFolder,
  operations: Operations | undefined,
  paths: readonly string[],
  found: Diagnostics,
): UsedPolicies {
  const own = new OwnPolicies(project, found)
  const reader = new PolicyReader(file, own, found)
  const ofApi = reader.flows(['data', 'apiPolicies'], variablesOf(paths))
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
  const context = file.optional(['data', 'context'])
  const existing = new Set(operations.all.map(({ verb, template }) => `${verb} ${template}`))
  for (const at of operationsWithPolicies(file)) {
    const target = file.optional([...at, 'target'])
    const flows = reader.flows([...at, 'operationPolicies'], variablesOf([context, target]))
    if (FLOWS.every(flow => flows[flow].length === 0)) continue
    const key = operations.keyOf(file.optional([...at, 'verb']), target)
    // A diagnostic tells of an operation that is left out. Both directions of a topic are one operation.
    if (existing.has(key)) byOperation[key] = joined(byOperation[key] ?? NO_FLOW_NAMES, flows)
  }
  return byOperation
}

/** Names of the variables of path templates. */
function variablesOf(paths: readonly string[]): ReadonlySet<string> {
  return new Set(paths.flatMap(path => [...path.matchAll(/\{([^{}]*)\}/g)].map(([, name]) => name!)))
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
  /** Names of the sequences. */
  readonly #names = new Set<string>()
  #uses = 0

  constructor(file: YamlFile, own: OwnPolicies, found: Diagnostics) {
    this.#file = file
    this.#own = own
    this.#found = found
  }

  /** `variables`: those of the templates of the resources. */
  flows(at: Path, variables: ReadonlySet<string>): FlowNames {
    if (!this.#file.hasContent(at)) return NO_FLOW_NAMES
    return {
      request: this.#namesOf(at, 'request', variables),
      response: this.#namesOf(at, 'response', variables),
      fault: this.#namesOf(at, 'fault', variables),
    }
  }

  /** Names of the sequences of one flow, sorted by `order`, else as listed. */
  #namesOf(flows: Path, flow: Flow, variables: ReadonlySet<string>): readonly string[] {
    const list = [...flows, flow]
    const length = this.#file.lengthOf(list)
    if (length === undefined && this.#file.hasContent(list)) {
      this.#file.error(list, undefined, 'expected a list', 'begin each policy with "-"')
    }
    const order = Array.from({ length: length ?? 0 }, (_, item) => this.#orderOf([...list, item, 'order'], item + 1))
    const items = [...order.keys()].sort((one, two) => order[one]! - order[two]!)
    return items.flatMap(item => this.#use([...list, item], flow, variables) ?? [])
  }

  #orderOf(at: Path, fallback: number): number {
    const given = this.#file.optional(at)
    if (given === '') return fallback
    if (/^\d{1,9}$/.test(given)) return Number(given)
    this.#file.error(at, given, 'is no whole number', 'write 1 for the first policy of the flow')
    return fallback
  }

  /** Returns the name of the sequence of one use, undefined after an error. */
  #use(at: Path, flow: Flow, variables: ReadonlySet<string>): string | undefined {
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
    if ('elements' in policy) {
      this.#warnOfDestination(at, policy, values)
      this.#checkVariables(at, policy, values, variables)
    }
    return this.#sequence(at, `${name}_${version}`, flow, values, policy)
  }

  #warnOfDestination(at: Path, { destination }: BuiltInPolicy, values: PolicyValues): void {
    const url = destination === undefined ? undefined : values.get(destination)
    if (url === undefined || !/^\w+:\/\//.test(url) || isDestination(this.#file)) return
    const hint = 'write endpoint_type: default where policies choose the backend'
    this.#file.warn([...at, 'parameters', destination!], url, 'has no effect: the API has endpoints', hint)
  }

  /** A variable that no request has would be sent to the backend as it is written. */
  #checkVariables(at: Path, { template }: BuiltInPolicy, values: PolicyValues, variables: ReadonlySet<string>): void {
    if (template === undefined) return
    const value = values.get(template) ?? ''
    const unknown = [...value.matchAll(PATH_VARIABLE)].map(([, name]) => name!).find(name => !variables.has(name))
    if (unknown === undefined) return
    const known = variables.size === 0 ? 'it has none' : `it has ${abbreviatedList([...variables], NAMES_SHOWN)}`
    const expected = `the template of the resource has no variable ${unknown}`
    this.#file.error([...at, 'parameters', template], value, expected, known)
  }

  /** Returns the policy of a use (D255), undefined after an error. */
  #policy(at: Path, name: string, version: string): OwnPolicy | BuiltInPolicy | undefined {
    const built = builtInPolicy(name)
    const shipped = SHIPPED_VERSION.test(version) ? built : undefined
    const type = this.#file.optional([...at, 'policyType']).toLowerCase()
    if (shipped !== undefined && type !== 'api') {
      this.#own.passOver(name, version, type)
      return shipped
    }
    const own = this.#own.find(name, version, type)
    if (own === null) return undefined
    const policy = own ?? shipped
    if (policy !== undefined) return policy
    if (built === undefined) return this.#unknown(at, name, version)
    const hint = `add Policies/${name}_${version}.yaml and .j2, or write v1 for the policy of the gateway`
    this.#file.error([...at, 'policyVersion'], version, `is no version of ${name} that the gateway has`, hint)
    return undefined
  }

  #unknown(at: Path, name: string, version: string): undefined {
    const known = [...new Set([...this.#own.names, ...BUILT_IN_NAMES])]
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
    const name = this.#nameOf(policy, flow, values, definition)
    const isOwn = 'sequence' in definition
    const text = isOwn
      ? definition.sequence(name, values, this.#found)
      : sequenceText(name, definition.elements(values, flow))
    if (text === undefined) return undefined
    const label = isOwn ? definition.label : `${this.#file.where([...at, 'policyName'])} ${policy}`
    this.#known.set(key, name)
    this.sources.push({ name, label, text })
    return name
  }

  #nameOf(policy: string, flow: Flow, values: PolicyValues, definition: OwnPolicy | BuiltInPolicy): string {
    const secrets = definition.parameters.filter(({ isSecret }) => isSecret).map(({ name }) => name)
    const told = [...values].filter(([name]) => !secrets.includes(name))
    const first = sequenceName(policy, 'elements' in definition ? flow : '', told)
    let name = first
    for (let n = 2; this.#names.has(name); n++) name = `${first}-${n}`
    this.#names.add(name)
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
    for (const { name, isRequired, fallback, pattern, isSecret, inert, remedy, hint = 'add it' } of parameters) {
      const path = [...at, name]
      const value = file.value(path)
      if (typeof value === 'object') file.error(path, undefined, 'expected text', 'write one value')
      const text = value === undefined ? fallback : String(value)
      if (inert !== undefined && text !== '' && text !== fallback) file.warn(path, text, 'has no effect', inert)
      if (text === '' && isRequired) file.error(path, undefined, 'is missing', hint)
      else if (text !== '' && pattern !== null && !pattern.test(text)) {
        file.error(path, isSecret ? undefined : text, 'is not a valid value', remedy ?? `expected ${pattern.source}`)
      }
      if (value !== undefined || fallback !== '') values.set(name, text)
    }
    return file.errors.length === before ? values : undefined
  }
}

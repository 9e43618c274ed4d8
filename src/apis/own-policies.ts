/**
 * The policies of a project: `Policies/NAME_VERSION.yaml` declares parameters and flows as exports do. Later releases
 * export `NAME_VERSION_TYPE.yaml`. The file of the same name with `.j2` is the template of the sequence that the policy
 * becomes. The one with `.mjs` is an ES module that runs as that of `<class>`, with the parameters as its properties.
 */
import { basename, join, relative, resolve, sep } from 'node:path'
import { abbreviatedList, type Diagnostic, type Diagnostics } from '../config/diagnostics.ts'
import { labelOf, readSource } from '../config/source-file.ts'
import { type Flow, FLOWS } from './api-definition.ts'
import type { PolicyParameter, PolicyValues } from './policy-parameters.ts'
import { MemberCheck } from './known-members.ts'
import { escapeXml, renderTemplate } from './policy-template.ts'
import { mayHave, type ProjectFolder } from './project-folder.ts'
import { POLICY_FILE } from './project-members.ts'
import { filesBelow, sequenceStart, sequenceText } from './project-sequences.ts'
import { type Path, YamlFile } from './yaml-file.ts'

/** A policy that a project declares. */
export interface OwnPolicy {
  readonly flows: readonly Flow[]
  readonly parameters: readonly PolicyParameter[]
  /** File of the template, or of the module. */
  readonly label: string
  /** Text of the whole sequence of that name; undefined, with an error, where the template cannot be rendered. */
  readonly sequence: (name: string, values: PolicyValues, found: Diagnostics) => string | undefined
}

export const POLICIES = 'Policies'
const SPECIFICATION = /\.(?:ya?ml|json)$/i
const TEMPLATE = '.j2'
const MODULES = ['.mjs', '.js']
/** `policyType` of a use, and end of file names: policies of one API, and those that all APIs share. */
const TYPES = ['api', 'common']
const FILE_BYTES_MAX = 1024 * 1024
/** End of a file name, behind the name of the policy. */
const FILE_END = /_v[\d.]+(?:_(?:api|common))?$/
/** Names that a warning shows. */
const NAMES_SHOWN = 5

/** The policies that a project declares. Each file is read once, when the first use needs it. */
export class OwnPolicies {
  readonly #folder: string
  readonly #paths: readonly string[]
  readonly #found: Diagnostics
  readonly #known = new Map<string, OwnPolicy | null>()
  /** File names, without ending, of policies in whose place a built-in one runs. */
  readonly #passedOver = new Set<string>()

  constructor({ folder, names }: ProjectFolder, found: Diagnostics) {
    this.#folder = folder
    this.#paths = mayHave(names, POLICIES) ? filesBelow(join(folder, POLICIES)) : []
    this.#found = found
  }

  /** Names of the policies whose specification is there. */
  get names(): readonly string[] {
    const stems = this.#paths.filter(path => SPECIFICATION.test(path)).map(path => basename(path))
    return stems.map(stem => stem.replace(SPECIFICATION, '').replace(FILE_END, ''))
  }

  /**
   * Returns undefined for a policy that the project does not have, and null after an error of the policy. `type`: that
   * of the use, '' for none.
   */
  find(name: string, version: string, type: string): OwnPolicy | null | undefined {
    const stem = this.#stemOf(name, version, type)
    if (stem === undefined) return undefined
    const known = this.#known.get(stem)
    if (known !== undefined) return known
    const policy = this.#read(stem, this.#specificationOf(stem)!, name)
    this.#known.set(stem, policy)
    return policy
  }

  /** A built-in policy runs in place of the one that the project may have. */
  passOver(name: string, version: string, type: string): void {
    const stem = this.#stemOf(name, version, type)
    if (stem !== undefined) this.#passedOver.add(stem)
  }

  /** Reports unused files in one warning, because exports have the files of each policy that they use. */
  warnOfUnused(): void {
    if (this.#passedOver.size === 0) return
    const names = abbreviatedList([...this.#passedOver], NAMES_SHOWN)
    const hint = 'the gateway runs policies of its own; write policyType: api to run those of the project'
    this.#found.warn(labelOf(join(this.#folder, POLICIES)), '', `has files without effect: ${names}`, hint)
  }

  /** The files of the type that the use names come first. */
  #stemOf(name: string, version: string, type: string): string | undefined {
    const types = TYPES.toSorted((one, other) => Number(other === type) - Number(one === type))
    const stems = [...types.map(each => `${name}_${version}_${each}`), `${name}_${version}`, name]
    return stems.find(each => this.#specificationOf(each) !== undefined)
  }

  #specificationOf(stem: string): string | undefined {
    return this.#paths.find(path => SPECIFICATION.test(path) && basename(path).replace(SPECIFICATION, '') === stem)
  }

  #read(stem: string, path: string, name: string): OwnPolicy | null {
    const source = readSource(path, FILE_BYTES_MAX)
    if (source === undefined || source.error !== undefined) return this.#refuse(source?.error)
    const file = new YamlFile(source.label, source.text)
    const specification = file.errors.length > 0 ? undefined : readSpecification(file, name)
    this.#found.errors.push(...file.errors)
    this.#found.warnings.push(...file.warnings)
    const steps = this.#moduleOf(stem) ?? this.#template(stem, source.label)
    if (file.errors.length > 0 || specification === undefined || steps === undefined) return null
    return { ...specification, ...steps }
  }

  /** Returns undefined for a policy with a template or without a module. The project lies below `apis/` of its home. */
  #moduleOf(stem: string): Steps | undefined {
    if (this.#pathOf(stem + TEMPLATE) !== undefined) return undefined
    const path = MODULES.map(ending => this.#pathOf(stem + ending)).find(each => each !== undefined)
    if (path === undefined) return undefined
    const fromHome = relative(resolve(this.#folder, '../..'), path).replaceAll(sep, '/')
    return { label: labelOf(path), sequence: sequenceOfModule(fromHome) }
  }

  #pathOf(file: string): string | undefined {
    return this.#paths.find(each => basename(each) === file)
  }

  #template(stem: string, specification: string): Steps | undefined {
    const path = this.#pathOf(stem + TEMPLATE)
    const source = path === undefined ? undefined : readSource(path, FILE_BYTES_MAX)
    if (source?.error !== undefined) this.#found.errors.push(source.error)
    if (source !== undefined && source.error !== undefined) return undefined
    if (source !== undefined) return { label: source.label, sequence: sequenceOf(source) }
    const other = this.#paths.find(each => basename(each).startsWith(`${stem}.`) && !SPECIFICATION.test(each))
    const hint =
      other === undefined ? `add ${stem}${TEMPLATE} or ${stem}.mjs` : `${basename(other)} is for another gateway`
    return this.#found.error(specification, '', 'has no template', hint)
  }

  #refuse(error: Diagnostic | undefined): null {
    if (error !== undefined) this.#found.errors.push(error)
    return null
  }
}

/** The sequence of a policy, and the file that it comes from. */
type Steps = Pick<OwnPolicy, 'label' | 'sequence'>

interface Template {
  readonly label: string
  readonly text: string
}

/** Exports have the specification within `data`. */
function readSpecification(file: YamlFile, name: string): Pick<OwnPolicy, 'flows' | 'parameters'> {
  const at: Path = file.has(['data']) ? ['data'] : []
  new MemberCheck(file).members(POLICY_FILE, at)
  const given = file.text([...at, 'name'])
  if (given !== undefined && given !== name) {
    file.error([...at, 'name'], given, 'is not the name of the policy', `write ${name}, or rename the file`)
  }
  const list = [...at, 'policyAttributes']
  const parameters = Array.from({ length: file.lengthOf(list) ?? 0 }, (_, item) => readParameter(file, [...list, item]))
  const written = file.texts([...at, 'applicableFlows']).map(flow => flow.toLowerCase())
  const flows = FLOWS.filter(flow => written.includes(flow))
  const odd = written.find(flow => !FLOWS.some(each => each === flow))
  if (odd !== undefined) file.error([...at, 'applicableFlows'], odd, `expected ${FLOWS.join(', ')}`, 'correct it')
  return { flows: written.length === 0 ? FLOWS : flows, parameters }
}

function readParameter(file: YamlFile, at: Path): PolicyParameter {
  const name = file.text([...at, 'name']) ?? ''
  const isRequired = file.flag([...at, 'required'], false)
  const fallback = file.has([...at, 'defaultValue']) ? String(file.value([...at, 'defaultValue'])) : ''
  const type = file.optional([...at, 'type']).toLowerCase()
  const allowed = file.texts([...at, 'allowedValues'])
  const given = file.optional([...at, 'validationRegex'])
  return { name, isRequired, fallback, isSecret: type === 'secret', pattern: patternOf(file, at, type, allowed, given) }
}

const BY_TYPE: Readonly<Record<string, RegExp>> = { integer: /^-?\d+$/, boolean: /^(?:true|false)$/i }

/** The pattern of the specification, or that of the type. */
function patternOf(
  file: YamlFile,
  at: Path,
  type: string,
  allowed: readonly string[],
  given: string,
): PolicyParameter['pattern'] {
  if (allowed.length > 0) return new RegExp(`^(?:${allowed.map(value => RegExp.escape(value)).join('|')})$`)
  const plain = given.replace(/^\/(.*)\/$/, '$1')
  if (plain === '') return BY_TYPE[type] ?? null
  try {
    return new RegExp(plain)
  } catch {
    // The expression was written for another engine: the value is used unchecked, as without an expression.
    file.warn([...at, 'validationRegex'], given, 'is no regular expression and has no effect', 'correct it')
    return null
  }
}

function sequenceOfModule(path: string): OwnPolicy['sequence'] {
  return (name, values) => {
    const properties = [...values].map(
      ([parameter, value]) => `<property name="${escapeXml(parameter)}" value="${escapeXml(value)}"/>`,
    )
    return sequenceText(name, `<class name="${escapeXml(path)}">${properties.join('')}</class>`)
  }
}

/** The sequence keeps the lines of the template, so that diagnostics name them. */
function sequenceOf({ label, text }: Template): OwnPolicy['sequence'] {
  return (name, values, found) => {
    const rendered = renderTemplate(text, values)
    if (typeof rendered !== 'string') {
      return found.error(`${label}:${rendered.line}`, '', rendered.expected, rendered.hint)
    }
    const steps = rendered.replace(/^\s*<\?xml[^>]*\?>/, declaration => declaration.replaceAll(/[^\n]/g, ''))
    const root = /^(?:\s|<!--[\s\S]*?-->)*<sequence\b([^>]*)>/.exec(steps)
    if (root === null) return sequenceText(name, steps)
    const attributes = root[1]!
      .replace(/\sname\s*=\s*(?:"[^"]*"|'[^']*')/, '')
      .replace(/\sxmlns\s*=\s*["'][^"']*["']/, '')
    const rest = steps.slice(root[0].length)
    const lines = '\n'.repeat(root[0].split('\n').length - 1)
    return `${lines}${sequenceStart(name, attributes.replaceAll('\n', ' '))}${rest}`
  }
}

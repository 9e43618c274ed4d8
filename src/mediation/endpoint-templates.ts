/**
 * Templates of endpoints: files of `synapse-configs/default/templates` with an `<endpoint>`, in whose values `$name` is
 * a parameter. `<endpoint template="…">` makes an endpoint of one. Runs in the primary.
 */
import { Diagnostics } from '../config/diagnostics.ts'
import type { XmlElement } from '../config/xml.ts'
import { ElementParser, parseRoot } from './element-parser.ts'
import type { GroupViolation } from './endpoint-groups.ts'
import { parseInstance } from './endpoint-parser.ts'
import type { EndpointForm, TemplateInstance } from './endpoint-plan.ts'
import { type ExpressionSyntax, loadExpressionSyntax } from './expression-syntax.ts'

/** Makes endpoints of a template. Returns why values make none. */
export type Expand = (given: TemplateInstance['given']) => EndpointForm | GroupViolation

/** Instances of one template that are kept: each is asked for several times. */
const INSTANCES_MAX = 256

/** Parses the file of a template. `name`: that of the template. Undefined after any error. */
export async function parseEndpointTemplate(
  name: string,
  label: string,
  text: string,
  diagnostics: Diagnostics,
): Promise<Expand | undefined> {
  const before = diagnostics.errors.length
  const root = await parseRoot(text, label, 'template', diagnostics)
  if (root === undefined) return undefined
  const syntax = await loadExpressionSyntax()
  const parser = new ElementParser(syntax, diagnostics)
  const parameters = parseHead(root, parser)
  const endpoint = parser.only(root, 'endpoint')
  if (endpoint?.has('template')) parser.error(endpoint, 'template', 'is not supported in a template', 'write it out')
  if (endpoint?.has('key')) parser.error(endpoint, 'key', 'is not supported in a template', 'write the endpoint out')
  if (diagnostics.errors.length > before || endpoint === undefined) return undefined
  diagnostics.warnings.push(...warningsIn(name, endpoint, parameters, syntax))
  const kept = new Map<string, EndpointForm | GroupViolation>()
  return given => {
    const key = JSON.stringify(given)
    const known = kept.get(key)
    if (known !== undefined) return known
    const found = new Diagnostics()
    const values: Values = new Map([...NOTHING_GIVEN, ...parameters, ...Object.entries(given)])
    const form = instanceOf(name, endpoint, values, found, new ElementParser(syntax, found))
    if (kept.size >= INSTANCES_MAX) kept.clear()
    kept.set(key, form)
    return form
  }
}

/** By name; null for a parameter without a value. */
type Values = ReadonlyMap<string, string | null>

const NOTHING_GIVEN: Parameters = [
  ['name', ''],
  ['uri', null],
]

type Parameters = readonly (readonly [name: string, value: string | null])[]

function parseHead(root: XmlElement, parser: ElementParser): Parameters {
  parser.checkAttributes(root, ['name'])
  parser.checkElements(root, ['parameter', 'endpoint'])
  parser.checkNoText(root)
  return root.children
    .filter(({ name }) => name === 'parameter')
    .flatMap(element => {
      parser.checkAttributes(element, ['name', 'defaultValue'])
      parser.checkElements(element, [])
      const name = parser.required(element, 'name')
      const value = element.has('defaultValue') ? element.attribute('defaultValue') : null
      return name === undefined || (value === null && name === 'name') ? [] : [[name, value] as const]
    })
}

/** Warnings about the endpoint, with the defaults of the parameters: those of its uses are the same. */
function warningsIn(name: string, endpoint: XmlElement, parameters: Parameters, syntax: ExpressionSyntax) {
  const found = new Diagnostics()
  instanceOf(name, endpoint, new Map([...NOTHING_GIVEN, ...parameters]), found, new ElementParser(syntax, found))
  return found.warnings
}

function instanceOf(
  name: string,
  endpoint: XmlElement,
  values: Values,
  found: Diagnostics,
  parser: ElementParser,
): EndpointForm | GroupViolation {
  const missing = new Set<string>()
  // The longest name comes first: one may begin another one.
  const names = [...values.keys()].sort((one, two) => two.length - one.length)
  const uses = new RegExp(`\\$(${names.map(key => RegExp.escape(key)).join('|')})(?!\\w)`, 'g')
  const replace = (text: string): string =>
    text.replace(uses, (written, key: string) => {
      const value = values.get(key)!
      if (value === null) missing.add(key)
      return value ?? written
    })
  const form = parseInstance(endpoint.replaced(replace), parser)
  const [absent] = missing
  if (absent !== undefined) {
    const hint = absent === 'uri' ? 'add the attribute uri' : `add <parameter name="${absent}" value="…"/>`
    return { expected: `leaves out the parameter ${absent} of the template ${name}`, hint }
  }
  const [error] = found.errors
  if (error === undefined && form !== undefined) return form
  const { where = '', key = '', expected = '', hint = '' } = error ?? {}
  // The diagnostic leaves out the given value, which may be a secret.
  return { expected: `makes no endpoint of the template ${name}: ${where}: ${key}: ${expected}`, hint }
}

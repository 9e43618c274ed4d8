/** How elements of a sequence are read: what all mediators need of it, and the faults that are the same for all. */
import type { Findings } from '../config/findings.ts'
import { nearest } from '../config/nearest.ts'
import type { XmlElement } from '../config/xml.ts'
import type { Expression } from './expression.ts'
import type { Parsers } from './expression-parsers.ts'
import { ExpressionReader } from './expression-reader.ts'
import type { AnyMediator } from './mediator.ts'
import { patternOf } from './pattern.ts'
import type { Step } from './program.ts'
import { SEQUENCE_NAMESPACE, treeOfElement } from './xml-format.ts'
import type { XmlElementNode } from './xml-tree.ts'

/** Those of the reference platform that are not built yet. */
const LATER = [
  ...['aggregate', 'builder', 'cache', 'call', 'class', 'clone', 'endpoint', 'enrich', 'foreach', 'iterate'],
  ...['loopback', 'opa', 'propertyGroup', 'rewrite', 'scatter-gather', 'script', 'throwError', 'variable'],
]
const GIVEN_SHOWN = 200
/** What exported sequences say of themselves: a failure is in the log as it is, and the gateway words its answer. */
const ROOT_ONLY = ['onError', 'trace', 'statistics']
/** A note of the author, which changes nothing. */
const EVERYWHERE = ['description']

export class Reading {
  readonly requestFields = new Set<string>()
  readonly calls = new Set<string>()
  readonly #mediators: ReadonlyMap<string, AnyMediator>
  readonly #findings: Findings
  readonly #expressions: ExpressionReader

  constructor(mediators: readonly AnyMediator[], parsers: Parsers, findings: Findings) {
    this.#mediators = new Map(mediators.map(row => [row.name, row]))
    this.#findings = findings
    this.#expressions = new ExpressionReader(parsers, this.requestFields)
  }

  /** Steps of the whole file; `name`: what its root must be called. */
  root(root: XmlElement, name: string): readonly Step[] {
    this.attributes(root, ['name', ...ROOT_ONLY])
    for (const name of ROOT_ONLY.filter(it => isSaid(root, it))) {
      this.#findings.warn(root.where, `${root.qualifiedName}/${name}`, 'is not acted on', 'leave it out')
    }
    const given = this.required(root, 'name')
    if (given !== undefined && given !== name) {
      this.fault(root, 'name', `is not the name of its file, ${name}`, 'call it like the file', given)
    }
    this.noText(root)
    return this.steps(root.children)
  }

  /** In order; those that cannot be read are left out, with faults. */
  steps(elements: readonly XmlElement[]): readonly Step[] {
    return elements.flatMap((element, at) => {
      const step = this.#step(element)
      const next = elements[at + 1]
      if ((step?.mediator === 'respond' || step?.mediator === 'drop') && next !== undefined) {
        this.#findings.warn(next.where, next.name, `is not reached after <${step.mediator}>`, 'remove it')
      }
      return step === undefined ? [] : [step]
    })
  }

  #step(element: XmlElement): Step | undefined {
    const { name, line } = element
    const row = element.namespace === SEQUENCE_NAMESPACE ? this.#mediators.get(name) : undefined
    if (row === undefined) return this.#unknown(element)
    this.attributes(element, row.attributes)
    this.noText(element)
    if (row.elements !== null) this.elements(element, row.elements)
    const settings = row.read(element, this)
    return settings === undefined ? undefined : { mediator: name, line, settings }
  }

  #unknown(element: XmlElement): undefined {
    const { name } = element
    if (element.namespace !== SEQUENCE_NAMESPACE) {
      const remedy = `mediators are of the namespace ${SEQUENCE_NAMESPACE}`
      return this.fault(element, '', 'is no mediator', remedy)
    }
    if (LATER.some(later => later.toLowerCase() === name.toLowerCase())) {
      return this.fault(element, '', 'comes with mediation', 'remove it')
    }
    const known = [...this.#mediators.keys()]
    const near = nearest(name, known)
    return this.fault(element, '', 'is no mediator', near === '' ? `known are ${known.join(', ')}` : `<${near}>?`)
  }

  /** `field`: an attribute or an element within; '' for the element itself. */
  fault(element: XmlElement, field: string, expected: string, remedy: string, given = ''): undefined {
    const key = field === '' ? element.qualifiedName : `${element.qualifiedName}/${field}`
    const shown = given.length > GIVEN_SHOWN ? `${given.slice(0, GIVEN_SHOWN)}...` : given
    return this.#findings.fault(element.where, key, expected, remedy, shown)
  }

  /** A fault for every other attribute. */
  attributes(element: XmlElement, known: readonly string[]): void {
    for (const { name } of element.attributes) {
      if (known.includes(name) || EVERYWHERE.includes(name)) continue
      const near = nearest(name, known)
      const names = known.length === 0 ? 'it has none' : `known are ${known.join(', ')}`
      this.fault(element, name, 'is no attribute of it', near === '' ? names : `${near}?`)
    }
  }

  /** A fault for every other element in it, and for those of other namespaces. */
  elements(element: XmlElement, known: readonly string[]): void {
    for (const child of element.children) {
      if (known.includes(child.name) && child.namespace === SEQUENCE_NAMESPACE) continue
      const names = known.length === 0 ? 'it holds none' : `known are ${known.join(', ')}`
      this.fault(child, '', `is no element of <${element.name}>`, names)
    }
  }

  /** A fault for text that stands between its elements. */
  noText(element: XmlElement): void {
    if (element.nodes.some(node => typeof node === 'string' && node.trim() !== '')) {
      this.fault(element, '', 'holds text, which is not acted on', 'remove the text')
    }
  }

  /** The one element of that name; a fault for a second one. */
  only(element: XmlElement, name: string): XmlElement | undefined {
    const [first, second] = element.children.filter(child => child.name === name)
    if (second !== undefined) this.fault(second, '', `is a second one in <${element.name}>`, 'remove one')
    return first
  }

  required(element: XmlElement, attribute: string): string | undefined {
    const given = element.attribute(attribute)
    return given === '' ? this.fault(element, attribute, 'is missing', 'add it') : given
  }

  /** One of the choices, in their spelling and any case; `otherwise` where there is none. */
  choice<Choice extends string>(
    element: XmlElement,
    attribute: string,
    choices: readonly Choice[],
    otherwise: Choice,
  ): Choice | undefined {
    if (!element.has(attribute)) return otherwise
    const given = element.attribute(attribute)
    const found = choices.find(choice => choice.toLowerCase() === given.toLowerCase())
    return found ?? this.fault(element, attribute, `expected one of ${choices.join(', ')}`, 'correct it', given)
  }

  flag(element: XmlElement, attribute: string): boolean | undefined {
    const given = this.choice(element, attribute, ['true', 'false'], 'false')
    return given === undefined ? undefined : given === 'true'
  }

  /** Of an attribute that holds one; it must be there. */
  expression(element: XmlElement, attribute: string): Expression | undefined {
    const text = this.required(element, attribute)
    if (text === undefined) return undefined
    const { expression, why, remedy } = this.#expressions.read(text, prefix => element.namespaceOf(prefix))
    return expression ?? this.fault(element, attribute, why, remedy, text)
  }

  /** JSONPath on its own, without `json-eval()` around it. */
  jsonPath(element: XmlElement, attribute: string): Expression | undefined {
    const text = this.required(element, attribute)
    if (text === undefined) return undefined
    const { expression, why, remedy } = this.#expressions.readJsonPath(text)
    return expression ?? this.fault(element, attribute, why, remedy, text)
  }

  /** Exactly one of the attributes `value` and `expression`. */
  valueOrExpression(element: XmlElement): Expression | undefined {
    if (element.has('value') === element.has('expression')) {
      return this.fault(element, 'value', 'expected either value or expression', 'give one of them')
    }
    if (element.has('expression')) return this.expression(element, 'expression')
    return { kind: 'literal', value: element.attribute('value') }
  }

  /** An element of the file that is a value itself. */
  tree(element: XmlElement): XmlElementNode {
    return treeOfElement(element)
  }

  /** A regular expression of the language, as JavaScript has it. */
  pattern(element: XmlElement, attribute: string): string | undefined {
    const text = this.required(element, attribute)
    if (text === undefined) return undefined
    const { pattern, why, remedy } = patternOf(text)
    return pattern ?? this.fault(element, attribute, why, remedy, text)
  }
}

/** Not, where it switches off what there is none of. */
function isSaid(root: XmlElement, attribute: string): boolean {
  return root.has(attribute) && root.attribute(attribute) !== 'disable'
}

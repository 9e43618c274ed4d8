/**
 * `<script>`: runs JavaScript of the operator on a thread of its own pool, with the object `mc`. What clients send is
 * data of `mc` and never part of the code.
 */
import { Script } from 'node:vm'
import { isJavaClass } from '../../config/module-file.ts'
import type { XmlElement } from '../../config/xml.ts'
import { servicesOf } from '../backend-calls.ts'
import { mediator } from '../mediator.ts'
import { applyReply, scriptTask } from '../script-exchange.ts'
import { javaIn } from '../script-java.ts'
import type { ScriptSource } from '../script-task.ts'
import type { SequenceParser } from '../sequence-parser.ts'

/** `key`: an ES module, or a local entry or file with the text of functions. */
type ScriptSettings =
  | { readonly kind: 'inline'; readonly text: string; readonly line: number }
  | { readonly kind: 'module'; readonly key: string; readonly function: string }
  | {
      readonly kind: 'entry'
      readonly key: string
      readonly function: string
      /** Keys of the texts in front of it. */
      readonly includes: readonly string[]
    }

const JAVASCRIPT = ['js', 'javascript', 'nashornJs', 'rhinoJs', 'graalJs']
const TEXT_MAX = 65_536
/** Function of a script without the attribute, as on the reference platform. */
const FUNCTION = 'mediate'

export const script = mediator<ScriptSettings>({
  name: 'script',
  attributes: ['language', 'key', 'function', 'timeout'],
  elements: null,
  text: 'allowed',

  parse(element, parser) {
    if (!isJavaScript(element, parser)) return undefined
    if (element.has('timeout')) {
      parser.warn(element, 'timeout', 'has no effect', 'mediation.synapse.script_mediator_timeout limits all scripts')
    }
    const includes = parseIncludes(element, parser)
    return element.has('key') ? ofKey(element, includes, parser) : inline(element, parser)
  },

  needs: () => 'worker',

  compile(settings, { location }) {
    const label = location.slice(0, location.lastIndexOf(':'))
    return async message => {
      const services = servicesOf(message)
      const { code } = services
      const source = await sourceOf(settings, label, key => code.text(key))
      const reply = await code.script(scriptTask(message, source))
      return applyReply(reply, message, services)
    }
  },
})

function isJavaScript(element: XmlElement, parser: SequenceParser): boolean {
  const language = element.attribute('language') || 'js'
  if (JAVASCRIPT.some(known => known.toLowerCase() === language.toLowerCase())) return true
  parser.error(element, 'language', 'is not supported', 'write the script in JavaScript, language="js"', language)
  return false
}

function inline(element: XmlElement, parser: SequenceParser): ScriptSettings | undefined {
  if (element.has('function')) return parser.error(element, 'function', 'needs key', 'remove it, or name a file by key')
  const text = element.nodes.filter(node => typeof node === 'string').join('')
  if (text.trim() === '') return parser.error(element, '', 'has no code', 'write it within <![CDATA[ ]]>')
  if (text.length > TEXT_MAX) {
    return parser.error(element, '', `has more than ${TEXT_MAX} characters`, 'move it to a module')
  }
  const { line } = element
  const broken = syntaxErrorOf(text, line)
  const java = javaIn(text)
  if (java !== null)
    parser.warnInText(element, line + java.linesBefore, `uses ${java.name}: Java does not run here`, java.remedy)
  if (broken === '') return { kind: 'inline', text, line }
  return parser.error(element, '', `is no JavaScript: ${broken}`, 'correct it; literals of XML (E4X) are texts: "<a/>"')
}

/** The syntax error of the code, with its line in the file; '' for none. The code does not run. */
function syntaxErrorOf(text: string, line: number): string {
  try {
    void new Script(text, { filename: 'script', lineOffset: line - 1 })
    return ''
  } catch (error) {
    const { message, stack = '' } = error as Error
    const at = /^script:(\d+)/.exec(stack)?.[1] ?? line
    return `${message} in line ${at}`
  }
}

/** Keys of `<include>`. */
function parseIncludes(element: XmlElement, parser: SequenceParser): readonly string[] {
  return element.children.flatMap(child => {
    const isModule = element.attribute('key').endsWith('.mjs')
    if (child.name !== 'include' || !element.has('key') || isModule) {
      const hint = 'write code within <![CDATA[ ]]>; a module imports other files; <include> needs key'
      parser.error(child, '', `is not an element of ${isModule ? 'a module' : '<script>'}`, hint)
      return []
    }
    parser.checkAttributes(child, ['key'])
    parser.checkElements(child, [])
    parser.checkNoText(child)
    const key = parser.required(child, 'key')
    if (key === undefined) return []
    parser.uses(child, 'script', key)
    return [key]
  })
}

function ofKey(element: XmlElement, includes: readonly string[], parser: SequenceParser): ScriptSettings | undefined {
  const key = parser.required(element, 'key')
  if (key === undefined) return undefined
  if (element.nodes.some(node => typeof node === 'string' && node.trim() !== '')) {
    return parser.error(element, '', 'has both code and key', 'keep one of them')
  }
  if (isJavaClass(key)) return parser.error(element, 'key', 'is a Java class', 'name an ES module (.mjs)', key)
  const name = element.attribute('function') || FUNCTION
  if (!/^[A-Za-z_$][\w$]{0,99}$/.test(name)) {
    return parser.error(element, 'function', 'is not the name of a function', 'for example mediate', name)
  }
  const isModule = key.endsWith('.mjs')
  parser.uses(element, isModule ? 'module' : 'script', key)
  return isModule ? { kind: 'module', key, function: name } : { kind: 'entry', key, function: name, includes }
}

async function sourceOf(
  settings: ScriptSettings,
  label: string,
  text: (key: string) => Promise<string>,
): Promise<ScriptSource> {
  if (settings.kind === 'inline') return { ...settings, label }
  const { key, function: name } = settings
  if (settings.kind === 'module') return { kind: 'module', path: key, function: name }
  const included = await Promise.all(settings.includes.map(text))
  const before = included.map(each => `${each}\n`).join('')
  // Lines are counted from the first one of the script itself.
  const line = 1 - (before.split('\n').length - 1)
  return { kind: 'entry', text: before + (await text(key)), label: key, line, function: name }
}

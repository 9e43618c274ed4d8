/** Built-in policies as data: their parameters, and the elements of the mediation language that they become. */
import type { Flow } from './api-definition.ts'
import { escapeXml } from './policy-template.ts'

/** A declared parameter of a policy. */
export interface PolicyParameter {
  readonly name: string
  readonly isRequired: boolean
  /** '' for none. */
  readonly fallback: string
  /** Null: any text. */
  readonly pattern: RegExp | null
  /** The value of the parameter must not be shown. */
  readonly isSecret?: boolean
  /** The remedy where the value does not fit the pattern; left out: the pattern. */
  readonly remedy?: string
  /** The remedy where the value is missing. */
  readonly hint?: string
  /** Why a value other than the default, or any where there is none, has no effect. */
  readonly inert?: string
}

/** Complete: with the default values of parameters that a use leaves out. */
export type PolicyValues = ReadonlyMap<string, string>

export interface BuiltInPolicy {
  readonly flows: readonly Flow[]
  readonly parameters: readonly PolicyParameter[]
  /** Parameter whose URL acts where sequences choose the backend, and nowhere else (D253). */
  readonly destination?: string
  /** Parameter whose `{name}` is a variable of the template of the resource. */
  readonly template?: string
  /** Elements of the sequence. */
  readonly elements: (values: PolicyValues, flow: Flow) => string
}

export const REQUEST: readonly Flow[] = ['request']
export const BOTH: readonly Flow[] = ['request', 'response']

export const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/
export const FLAG = /^(?:true|false)$/i
export const NUMBER = /^\d{1,9}$/

export function required(name: string, pattern: RegExp | null = null): PolicyParameter {
  return { name, isRequired: true, fallback: '', pattern }
}

export function optional(name: string, fallback = '', pattern: RegExp | null = null): PolicyParameter {
  return { name, isRequired: false, fallback, pattern }
}

/** Returns a parameter of exports that has no effect here. */
export function inert(name: string, reason: string, fallback = ''): PolicyParameter {
  return { ...optional(name, fallback), inert: reason }
}

/** Returns XML with escaped values. */
export function xml(texts: TemplateStringsArray, ...values: readonly string[]): string {
  return texts.map((text, at) => `${text}${at < values.length ? escapeXml(values[at]!) : ''}`).join('')
}

/** Returns an element with an attribute for each value that is given. */
export function element(name: string, attributes: Readonly<Record<string, string>>, inner = ''): string {
  const given = Object.entries(attributes).filter(([, value]) => value !== '')
  return `<${name}${given.map(([key, value]) => xml` ${key}="${value}"`).join('')}>${inner}</${name}>`
}

/** Returns the value of a parameter; '' for none. */
export function text(values: PolicyValues, name: string): string {
  return values.get(name) ?? ''
}

/**
 * The mediators that a thread has loaded: those of the default sequences, and all of them from the first plan on that
 * holds another one. All of them are 70 modules, which few reactors need.
 */
import type { AnyMediator } from '../mediator.ts'
import { drop } from './drop.ts'
import { filter } from './filter.ts'
import { header } from './header.ts'
import { payloadFactory } from './payload-factory.ts'
import { property } from './property.ts'
import { send } from './send.ts'
import { sequence } from './sequence.ts'

const loaded = new Map([property, payloadFactory, header, filter, sequence, send, drop].map(it => [it.name, it]))

/** Throws for a mediator that is not loaded. */
export function loadedMediator(name: string): AnyMediator {
  const found = loaded.get(name)
  if (found === undefined) throw new Error(`no mediator ${name}`)
  return found
}

/** The list of all mediators adds itself when it is loaded. */
export function addMediators(mediators: readonly AnyMediator[]): void {
  for (const mediator of mediators) loaded.set(mediator.name, mediator)
}

/** Whether these steps can be compiled. Mediators stand in the settings of others, too. */
export function areLoaded(settings: unknown): boolean {
  if (typeof settings !== 'object' || settings === null) return true
  if ('mediator' in settings && !loaded.has(String(settings.mediator))) return false
  return Object.values(settings).every(areLoaded)
}

/** The list of mediators: a new one is a file in this folder and a row here. */
import type { AnyMediator } from '../mediator.ts'
import { drop } from './drop.ts'
import { filter } from './filter.ts'
import { header } from './header.ts'
import { inMediator, outMediator } from './in-out.ts'
import { log } from './log.ts'
import { makefault } from './makefault.ts'
import { payloadFactory } from './payload-factory.ts'
import { property } from './property.ts'
import { respond } from './respond.ts'
import { send } from './send.ts'
import { sequence } from './sequence.ts'
import { switchMediator } from './switch.ts'

export const MEDIATORS: readonly AnyMediator[] = [
  ...[property, payloadFactory, header, log, makefault],
  ...[filter, switchMediator, sequence, inMediator, outMediator],
  ...[send, respond, drop],
]

/** A thread's own plan. */
import { parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads'
import type { ReactorPlan } from '../plan.ts'
import { planFrom, type ToldPlan } from '../told-plan.ts'

/** Waits for it, and blocks: a thread that has no plan has nothing else to do. To be called once. */
export function ownPlan(): ReactorPlan {
  Atomics.wait(workerData.told as Int32Array, 0, 0)
  const { message } = receiveMessageOnPort(parentPort!) as { readonly message: ToldPlan }
  return planFrom(message)
}

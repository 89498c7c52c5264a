import { Duration } from 'aws-cdk-lib';
import type { HttpApi } from 'aws-cdk-lib/aws-apigatewayv2';
import {
  Alarm,
  ComparisonOperator,
  type IMetric,
  MathExpression,
  Stats,
  TreatMissingData,
} from 'aws-cdk-lib/aws-cloudwatch';
import { SnsAction } from 'aws-cdk-lib/aws-cloudwatch-actions';
import { Function as LambdaFunction } from 'aws-cdk-lib/aws-lambda';
import { Topic } from 'aws-cdk-lib/aws-sns';
import type { Construct } from 'constructs';
import type { Deployment } from './deployment.ts';

const PERIOD = Duration.minutes(5);

/** Alarms of API Gateway and AWS Lambda. The page names what to do about each. */
export function createAlarms(
  scope: Construct,
  { alarms }: Deployment,
  { api, maintain }: { readonly api: HttpApi; readonly maintain: LambdaFunction },
): void {
  const { topicArn, serverErrorPercent, latencyMs } = alarms;
  const topic = topicArn ? Topic.fromTopicArn(scope, 'AlarmTopic', topicArn) : undefined;
  const serverErrors = new MathExpression({
    expression: '100 * failed / total',
    usingMetrics: {
      failed: api.metricServerError({ statistic: Stats.SUM }),
      total: api.metricCount({ statistic: Stats.SUM }),
    },
    period: PERIOD,
  });
  /** Fires when the metric is above `limit` in as many periods in a row. */
  const alarm = (id: string, alarmDescription: string, metric: IMetric, limit: number, periods: number) => {
    const created = new Alarm(scope, id, {
      alarmDescription,
      metric,
      threshold: limit,
      evaluationPeriods: periods,
      comparisonOperator: ComparisonOperator.GREATER_THAN_THRESHOLD,
      treatMissingData: TreatMissingData.NOT_BREACHING,
    });
    if (topic) created.addAlarmAction(new SnsAction(topic));
  };
  const latency = api.metricLatency({ statistic: Stats.percentile(99), period: PERIOD });
  const throttles = LambdaFunction.metricAllThrottles({ statistic: Stats.SUM, period: PERIOD });
  const cleanupErrors = maintain.metricErrors({ statistic: Stats.SUM, period: Duration.minutes(10) });
  alarm('ServerErrorsAlarm', 'Requests are answered with 5xx.', serverErrors, serverErrorPercent, 2);
  alarm('LatencyAlarm', 'Requests take long.', latency, latencyMs, 3);
  alarm('ThrottlesAlarm', 'Functions of the account are at the limit of concurrency.', throttles, 0, 2);
  alarm('CleanupAlarm', 'Expired changes and idempotency keys are not deleted.', cleanupErrors, 0, 6);
}

//! Prints what a program tells `tokio-console` in the first message: tasks, resources, and operations on these.

use console_api::Attribute;
use console_api::instrument::InstrumentRequest;
use console_api::instrument::instrument_client::InstrumentClient;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut client = InstrumentClient::connect("http://127.0.0.1:6669").await?;
    let mut updates = client.watch_updates(InstrumentRequest {}).await?.into_inner();
    let update = updates.message().await?.ok_or("no message")?;
    let tasks = update.task_update.unwrap_or_default();
    for task in tasks.new_tasks {
        let id = task.id.unwrap_or_default().id;
        let place = task.location.map(|place| place.to_string()).unwrap_or_default();
        let stats = tasks.stats_update.get(&id);
        let polls = stats.and_then(|stats| stats.poll_stats.as_ref()).map_or(0, |stats| stats.polls);
        let wakes = stats.map_or(0, |stats| stats.wakes);
        println!("task {id} spawned at {place}: {polls} polls, {wakes} wakes");
    }
    let resources = update.resource_update.unwrap_or_default();
    for resource in resources.new_resources {
        let id = resource.id.unwrap_or_default().id;
        let place = resource.location.map(|place| place.to_string()).unwrap_or_default();
        let attributes = resources.stats_update.get(&id).map(|stats| written(&stats.attributes));
        println!(
            "resource {id} {} made at {place} {}",
            resource.concrete_type,
            attributes.unwrap_or_default()
        );
    }
    let operations = update.async_op_update.unwrap_or_default();
    for operation in operations.new_async_ops {
        let stats = operations.stats_update.get(&operation.id.unwrap_or_default().id);
        let task = stats.and_then(|stats| stats.task_id).unwrap_or_default().id;
        let resource = operation.resource_id.unwrap_or_default().id;
        let attributes = stats.map(|stats| written(&stats.attributes)).unwrap_or_default();
        println!("operation {} of task {task} on resource {resource} {attributes}", operation.source);
    }
    Ok(())
}

/// `name=value` of each attribute.
fn written(attributes: &[Attribute]) -> String {
    let fields = attributes.iter().filter_map(|attribute| attribute.field.as_ref());
    fields.map(ToString::to_string).collect::<Vec<_>>().join(" ")
}
